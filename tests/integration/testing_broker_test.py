"""`runnel.testing`: a broker for other people's tests, which leaves nothing behind."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from runnel.client.raw import WireClient
from runnel.testing import BrokerError, RunnelBroker
from tests.support.process import ROOT, environment

PROJECT = ROOT / "tests/plugin/project"
MODES = pytest.mark.parametrize("in_process", [False, True], ids=["process", "in-process"])


def partitions_of(broker: RunnelBroker, topic: str) -> int:
    with WireClient(("127.0.0.1", broker.port)) as client:
        return client.topic(topic).partition_count


@MODES
def test_a_broker_serves_and_leaves_nothing(in_process: bool) -> None:
    """Goal: twice in one process, and each time no thread, no folder, no child, no open file."""
    threads, me = set(threading.enumerate()), psutil.Process()
    children = set(me.children())  # of other tests in this process
    level = logging.getLogger("runnel").level
    for _ in range(2):
        with RunnelBroker(in_process=in_process) as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            assert admin.list_topics(timeout=10).brokers
            broker.create_topic("orders", partitions=3, config={"retention.ms": 1000})
            assert partitions_of(broker, "orders") == 3
            folder = broker.data_dir
            assert folder.is_dir() and broker.is_running
            assert (broker.pid == os.getpid()) == in_process
        assert not folder.parent.exists() and not broker.is_running
        assert broker.logs
        del admin
    ours = set(me.children()) - children
    assert not [child for child in ours if "runnel" in " ".join(child.cmdline())]
    names = {thread.name for thread in set(threading.enumerate()) - threads}
    assert not {name for name in names if name.startswith(("runnel", "metadata"))}, names
    assert logging.getLogger("runnel").level == level
    assert not [file.path for file in me.open_files() if "runnel-" in file.path]


@MODES
def test_a_restart_keeps_the_port_and_the_data(in_process: bool) -> None:
    with RunnelBroker(in_process=in_process) as broker:
        broker.create_topic("kept", partitions=2)
        address = broker.bootstrap_servers
        broker.restart()
        assert broker.bootstrap_servers == address
        assert partitions_of(broker, "kept") == 2
        broker.stop()
        broker.stop()
        with pytest.raises(BrokerError, match="no broker answers"):
            broker.create_topic("more")
        broker.start()
        with pytest.raises(BrokerError, match="running already"):
            broker.start()
        broker.delete_topic("kept")
    with pytest.raises(BrokerError, match="closed"):
        broker.start()


@MODES
def test_a_folder_that_is_given_is_kept(tmp_path: Path, in_process: bool) -> None:
    folder = tmp_path / "data"
    with RunnelBroker(in_process=in_process, data_dir=folder) as broker:
        broker.create_topic("kept")
        with pytest.raises(BrokerError, match="in use"):
            RunnelBroker(in_process=in_process, data_dir=folder).__enter__()
        assert partitions_of(broker, "kept") == 1
    assert (folder / "kept-0").is_dir()


@MODES
@pytest.mark.parametrize(
    ("settings", "named"),
    [({"num.partitions": 0}, "num.partitions"), ({"num.partition": 1}, "num.partition")],
)
def test_bad_settings_are_told(settings: dict[str, int], named: str, in_process: bool) -> None:
    with pytest.raises(BrokerError, match=named):
        RunnelBroker(settings, in_process=in_process).__enter__()


@MODES
def test_refused_requests_are_told(in_process: bool) -> None:
    with RunnelBroker(in_process=in_process) as broker:
        name = broker.create_topic()
        assert name != broker.create_topic()
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            broker.create_topic(name)
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            broker.delete_topic("absent")


def test_a_process_can_be_killed_and_a_thread_cannot() -> None:
    with RunnelBroker() as broker:
        broker.kill()
        assert not broker.is_running
        broker.start()
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(BrokerError, match="-9"):
            broker.stop()
    with (
        RunnelBroker(in_process=True) as broker,
        pytest.raises(BrokerError, match="cannot be killed"),
    ):
        broker.kill()


def test_two_brokers_at_once_share_nothing() -> None:
    with RunnelBroker(in_process=True) as one, RunnelBroker(in_process=True) as other:
        one.create_topic("only-here")
        with pytest.raises(AssertionError):
            partitions_of(other, "only-here")


@MODES
def test_async_with(in_process: bool) -> None:
    async def use() -> Path:
        async with RunnelBroker(in_process=in_process) as broker:
            assert await asyncio.to_thread(broker.create_topic, "orders") == "orders"
            return broker.data_dir

    assert not asyncio.run(use()).exists()


def test_a_killed_test_run_leaves_no_broker() -> None:
    """Method: a run that starts a broker, prints where, and is killed."""
    script = (
        "from runnel.testing import RunnelBroker; import time\n"
        "broker = RunnelBroker().start()\n"
        "print(broker.pid, broker.data_dir.parent, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid, scratch = run.stdout.readline().split()
        assert psutil.pid_exists(int(pid)) and Path(scratch).exists()
        run.kill()
    deadline = time.monotonic() + 20
    while psutil.pid_exists(int(pid)) or Path(scratch).exists():
        assert time.monotonic() < deadline, "the broker outlived its tests"
        time.sleep(0.02)


def test_tests_of_any_language_get_an_address() -> None:
    ask = (
        "import os, sys; from confluent_kafka.admin import AdminClient\n"
        "servers = os.environ['BOOTSTRAP_SERVERS']\n"
        "brokers = AdminClient({'bootstrap.servers': servers}).list_topics(timeout=10).brokers\n"
        "sys.exit(40 + len(brokers))"
    )
    command = [sys.executable, "-m", "runnel.testing", sys.executable, "-c", ask]
    assert subprocess.run(command, env=environment(), timeout=60).returncode == 41
    command = [sys.executable, "-m", "runnel.testing", "no-such-program"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no-such-program" in done.stderr


def test_a_broker_ends_with_the_pipe_to_it() -> None:
    """However a helper in another language ends, no broker stays behind."""
    command = [sys.executable, "-m", "runnel.testing", "--until-eof"]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        address = run.stdout.readline().strip()
        brokers = AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).brokers
        assert len(brokers) == 1
        run.stdin.close()
        assert run.wait(30) == 0
        assert run.stdout.read() == ""


def test_the_plugin_costs_a_run_without_brokers_nothing() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import runnel.testing.pytest_plugin\n"
        "print(sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['runnel', 'runnel.testing', 'runnel.testing.pytest_plugin']"


def test_the_small_project_passes_here_too() -> None:
    """`make plugin` runs it with nothing but the wheel, and holds it to 0.3 s."""
    plugin = ("-p", "no:runnel", "-p", "runnel.testing.pytest_plugin")
    not_here = ("--ignore", "wheel_test.py")  # sources are not compiled, and bring no command
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "-p", "no:cacheprovider", *not_here]
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env=environment({"FIRST_ANSWER_S_MAX": "20"}),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout
    assert "first answer after" in done.stdout
