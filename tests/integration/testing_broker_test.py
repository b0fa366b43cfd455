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
from confluent_kafka.admin._config import ConfigResource

from runnel.client.raw import WireClient
from runnel.testing import BrokerError, RunnelBroker
from tests.support.process import ROOT, environment

PROJECT = ROOT / "tests/plugin/project"
PLUGIN = ("-p", "no:runnel", "-p", "runnel.testing.pytest_plugin", "-p", "no:cacheprovider")
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
@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:27777"}, "port="),
        ({"port": 27777}, "port="),
        ({"address": "127.0.0.1:27777"}, "port="),
        ({"log.dirs": "elsewhere"}, "data_dir="),
        ({"data_dir": "elsewhere"}, "data_dir="),
    ],
)
def test_what_arguments_say_is_no_setting(
    settings: dict[str, str], argument: str, in_process: bool
) -> None:
    with pytest.raises(BrokerError, match=argument):
        RunnelBroker(settings, in_process=in_process)


@MODES
def test_a_setting_takes_the_place_of_a_default_by_any_name(in_process: bool) -> None:
    settings = {"durability": "ack", "http": "127.0.0.1:0"}
    with RunnelBroker(settings, in_process=in_process) as broker:
        assert broker.metrics_url
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (asked,) = admin.describe_configs([ConfigResource("broker", "0")]).values()
        assert asked.result(10)["runnel.durability"].value == "ack"


@MODES
def test_refused_requests_are_told(in_process: bool) -> None:
    with RunnelBroker(in_process=in_process) as broker:
        name = broker.create_topic()
        assert name != broker.create_topic()
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            broker.create_topic(name)
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            broker.delete_topic("absent")
        broker.delete_topic("absent", missing_ok=True)


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


def test_an_interrupt_ends_command_and_broker_quietly() -> None:
    """Ctrl-C reaches both. Method: a process group of their own that is signalled."""
    script = "import time; print('runs', flush=True); time.sleep(60)"
    run = subprocess.Popen(
        [sys.executable, "-m", "runnel.testing", sys.executable, "-c", script],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert run.stdout is not None and run.stdout.readline() == "runs\n"
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 130 and "runnel" not in err, err


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
    not_here = ("--ignore", "wheel_test.py")  # sources are not compiled, and bring no command
    command = [sys.executable, "-m", "pytest", "-q", *PLUGIN, *not_here]
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


def test_the_end_of_a_test_is_orderly_whatever_it_did(tmp_path: Path) -> None:
    """A topic that it deleted itself is no error; after a crash its other brokers end too."""
    (tmp_path / "some_test.py").write_text(
        "import os, pathlib, signal, time\n"
        "def test_deletes(runnel_broker, runnel_topic):\n"
        "    runnel_broker.delete_topic(runnel_topic)\n"
        "def test_crash(start_runnel_broker):\n"
        "    one, two, three = (start_runnel_broker() for _ in range(3))\n"
        "    pathlib.Path('pids').write_text(f'{one.pid} {two.pid} {three.pid}')\n"
        "    os.kill(two.pid, signal.SIGKILL)\n"
        "def test_gone():\n"
        "    pids = pathlib.Path('pids').read_text().split()\n"
        "    assert not [pid for pid in pids if os.path.exists(f'/proc/{pid}')]\n"
        "def test_ini(start_runnel_broker):\n"
        "    start_runnel_broker({'durability': 'ack'})\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nrunnel_settings = runnel.durability=interval\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *PLUGIN, "some_test.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert "4 passed, 1 error in" in done.stdout, done.stdout
    assert "ERROR at teardown of test_crash" in done.stdout and "status -9" in done.stdout
