"""Goal: a start that cannot succeed says so in one line, ends with 2, and changes nothing."""

import json
import resource
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from runnel.client.raw import WireClient
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.process import StartBroker, environment, serve_command, serve_until_it_fails

META = "version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory}\n"
IDS = ("4L6g3nShT-eMCtK--X86sw", "5L6g3nShT-eMCtK--X86sw")


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def refused(folder: Path, *arguments: str, port: int = 0, **environ: str) -> str:
    """What a refused start said, after looking that it changed nothing below `folder`."""
    before = contents(folder)
    status, message = serve_until_it_fails(folder / "data", *arguments, port=port, **environ)
    assert status == 2, message
    assert len(message.splitlines()) == 1 and message.startswith("runnel"), message
    assert contents(folder) == before
    return message


@pytest.mark.parametrize(
    ("arguments", "environ", "named"),
    [
        (["--set", "log.retention.sm=5"], {}, ["log.retention.sm", "log.retention.ms"]),
        (["--set", "log.retention.ms=soon"], {}, ["log.retention.ms", "soon"]),
        (["--set", "num.partitions=0"], {}, ["num.partitions", "0"]),
        (["--set", "runnel.durability=never"], {}, ["runnel.durability", "never", "interval"]),
        (["--set", "num.partitions"], {}, ["num.partitions"]),
        (["--set", "num.partitions=1", "--set", "default_partitions=2"], {}, ["remove one"]),
        ([], {"RUNNEL_NUM_PARTITION": "5"}, ["RUNNEL_NUM_PARTITION", "num.partitions"]),
        (["--config", "absent.yaml"], {}, ["absent.yaml"]),
        (["--log-level", "loud"], {}, ["runnel.log.level", "loud"]),
        (["--log-file", "/proc/none/broker.log"], {}, ["/proc/none/broker.log", "choose another"]),
        (["--prot", "5"], {}, ["--prot", "--help"]),
        (["--host", "203.0.113.1", "--port", "1"], {}, ["203.0.113.1:1", "--host"]),
        (["--ready-file", "/proc/none/ready"], {}, ["--ready-file", "/proc/none"]),
    ],
)
def test_bad_configuration_is_named(
    tmp_path: Path, arguments: list[str], environ: dict[str, str], named: list[str]
) -> None:
    message = refused(tmp_path, *arguments, port=0, **environ)
    for word in named:
        assert word in message, message


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = refused(tmp_path, port=port)
    assert f"127.0.0.1:{port}" in message and "choose another port with --port" in message


@pytest.mark.parametrize("wrong", ["/proc/data", "file/data", "file", "link"])
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    message = refused(tmp_path, "--data-dir", str(tmp_path / wrong))
    assert str(tmp_path / wrong) in message, message


def test_another_folder_than_the_first_may_fail(start_broker: StartBroker, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folders = f"{tmp_path}/data,{tmp_path}/file"
    broker = start_broker(arguments=["--data-dir", folders])
    with WireClient(broker.address) as client:
        client.create_topic("t", 4)
    assert f"{tmp_path}/file is a file; choose another folder; its partitions are" in broker.log
    assert len(list((tmp_path / "data").glob("t-*"))) == 4


def own(folder: Path, cluster: int, node: int) -> None:
    folder.mkdir()
    directory = "AAAAAAAAAAAAAAAAAAAAA" + "ABCDEFGH"[len(list(folder.parent.iterdir()))]
    text = META.format(cluster=IDS[cluster], node=node, directory=directory)
    (folder / "meta.properties").write_text(text)


def test_folders_of_two_clusters_or_brokers_are_refused(tmp_path: Path) -> None:
    own(tmp_path / "a", 0, 1)
    own(tmp_path / "b", 1, 1)
    own(tmp_path / "c", 0, 2)
    both = ("--data-dir", f"{tmp_path}/a,{tmp_path}/b")
    message = refused(tmp_path, *both)
    assert IDS[0] in message and IDS[1] in message and "leave one of them out" in message
    message = refused(tmp_path, "--data-dir", f"{tmp_path}/new,{tmp_path}/a,{tmp_path}/c")
    assert "broker 1" in message and "broker 2" in message
    message = refused(tmp_path, "--data-dir", f"{tmp_path}/a,{tmp_path}/../{tmp_path.name}/a")
    assert "are one folder" in message
    message = refused(tmp_path, "--data-dir", str(tmp_path / "c"), "--broker-id", "5")
    assert "belongs to broker 2, not 5" in message


def test_a_folder_of_another_cluster_than_its_metadata(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.stop()
    meta = broker.data_dir / "meta.properties"
    text = meta.read_text()
    cluster = next(line for line in text.splitlines() if line.startswith("cluster.id"))
    meta.write_text(text.replace(cluster, f"cluster.id={IDS[0]}"))
    status, message = serve_until_it_fails(broker.data_dir)
    assert status == 2 and IDS[0] in message and str(meta) in message, message
    assert len(message.splitlines()) == 1, message


def test_the_metadata_must_come_first(start_broker: StartBroker, tmp_path: Path) -> None:
    """A new disk put before the old one would hide every topic's configuration."""
    broker = start_broker()
    broker.stop()
    folders = f"{tmp_path}/new,{broker.data_dir}"
    status, message = serve_until_it_fails(tmp_path / "unused", "--data-dir", folders)
    assert status == 2 and f"the metadata is in {broker.data_dir}" in message, message
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("room_bytes", [0, 1000, 20_000])
def test_a_full_disk_at_the_start_is_named(tmp_path: Path, room_bytes: int) -> None:
    """Method: a limit on file size, which fails a write as a full disk does."""

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, resource.RLIM_INFINITY))

    done = subprocess.run(
        serve_command(tmp_path / "data"),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=20,
        preexec_fn=full,
    )
    assert done.returncode == 2, done.stderr
    assert str(tmp_path / "data") in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_start_that_waits_for_its_metadata_can_be_stopped(tmp_path: Path) -> None:
    """Method: room for the files of the metadata, but not for the last changes."""

    def nearly_full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))

    command = serve_command(tmp_path / "data")
    environ = environment({"RUNNEL_HTTP_LISTENER": "off"})  # its file would be too large as well
    with subprocess.Popen(
        command, env=environ, stderr=subprocess.PIPE, text=True, preexec_fn=nearly_full
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "not ready yet, waiting for the metadata in" in line:
                break
        process.send_signal(signal.SIGTERM)
        told = process.stderr.read()
        assert process.wait(timeout=20) == 1
    assert "stopped before it was ready" in told and "Traceback" not in told, told


def test_a_folder_that_kafka_wrote_keeps_its_cluster_and_its_broker(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    own(tmp_path / "kafka", 0, 7)
    broker = start_broker(arguments=["--data-dir", f"{tmp_path}/new,{tmp_path}/kafka"])
    with WireClient(broker.address) as client:
        answer = client.call(MetadataRequest(topics=[]))
    assert (answer.cluster_id, answer.brokers[0].node_id) == (IDS[0], 7)
    broker.stop()
    assert IDS[0] in (tmp_path / "new/meta.properties").read_text()


def test_the_log_has_no_secret_and_can_be_json(start_broker: StartBroker, tmp_path: Path) -> None:
    file = tmp_path / "own.log"
    broker = start_broker(
        arguments=["--log-format", "json", "--log-file", str(file), "--log-level", "debug"],
        settings={"ssl.keystore.password": "s3cret", "sasl.jaas.config": "user hunter2"},
        environ={"KAFKA_PORT": "1"},
    )
    broker.stop()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    messages = [line["message"] for line in lines]
    assert any("is ready on" in message for message in messages)
    assert "ssl.keystore.password has no effect in this version" in messages
    assert "variable KAFKA_PORT is used, it sets the port to listen on" in messages
    assert file.read_text() == broker.log
    assert "s3cret" not in broker.log and "hunter2" not in broker.log
