"""`runnel topic` as a user runs it: a process of its own against a broker process."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Runnel
from tests.support.process import BrokerProcess


@pytest.fixture(scope="module")
def runnel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runnel]:
    folder: Path = tmp_path_factory.mktemp("cli")
    with BrokerProcess(folder / "data") as broker:
        yield Runnel(broker.bootstrap)


def test_create_and_list(runnel: Runnel) -> None:
    assert runnel.process("topic", "create", "made", "--partitions", "3").line == (
        "created made with 3 partitions"
    )
    document = runnel("topic", "create", "asJson", "-c", "retention.ms=1000", "--json").json
    assert (document["topic"], document["partitions"], document["created"]) == ("asJson", 1, True)
    listed = runnel("topic", "list", "--json").json
    assert {"topic": "made", "partitions": 3, "replication_factor": 1} in listed
    table = runnel("topic", "list").out.splitlines()
    assert table[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS"]
    assert ["made", "3", "1"] in [line.split() for line in table]


def test_only_validating_changes_nothing(runnel: Runnel) -> None:
    assert runnel("topic", "create", "perhaps", "--validate-only").line.startswith("could create")
    assert "perhaps" not in runnel("topic", "list").out


def test_if_not_exists(runnel: Runnel) -> None:
    runnel("topic", "create", "twice")
    assert runnel("topic", "create", "twice", "--if-not-exists").line == "twice is there already"


@pytest.mark.parametrize(
    ("arguments", "said", "advice"),
    [
        (["create", "taken"], "Topic 'taken' already exists", "Choose another name"),
        (["create", "a/b"], "Topic name is invalid", "A name has up to 249"),
        (["create", "x", "--replication-factor", "3"], "replication factor of 3", "more replicas"),
        (["create", "x", "--config", "no.such=1"], "no.such", "config describe"),
        (["create", "x", "-c", "retention.mss=1"], "retention.mss", "did you mean retention.ms?"),
        (["create", "x", "--config", "retention.ms"], "--config wants NAME=VALUE", "not"),
        (["create", "x", "-c", "retention.ms=1", "-c", "retention.ms=2"], "twice", "leave one"),
        (["create", "x", "--partitions", "0"], "--partitions", "Try 'runnel topic create --help'"),
        (["create"], "Missing argument 'TOPIC'", "Try 'runnel topic create --help'"),
        (["describe", "absent"], "there is no topic absent", "'runnel topic list'"),
        (["delete", "absent", "--yes"], "there is no topic absent", "'runnel topic list'"),
        (["delete", "taken"], "Delete taken with all records?", "add --yes"),
        (["delete", "taken", "absent", "--yes"], "there is no topic absent", "topic list"),
        (["alter", "taken"], "Nothing to alter", "give --config"),
        (["list", "--bootstrap-server", "nowhere"], "'nowhere' is not HOST:PORT", "localhost:9092"),
    ],
)
def test_what_is_refused_is_told_in_one_line_and_changes_nothing(
    runnel: Runnel, arguments: list[str], said: str, advice: str
) -> None:
    runnel.inside("topic", "create", "taken", "--if-not-exists")
    before = runnel.inside("topic", "list").out
    done = runnel.inside("topic", *arguments)
    assert done.status == 2
    assert done.out == "" and done.err.count("\n") == 1
    assert said in done.err and advice in done.err
    assert runnel.inside("topic", "list").out == before


def test_no_broker(runnel: Runnel) -> None:
    done = runnel.inside("topic", "list", "--bootstrap-server", "127.0.0.1:1")
    assert done.status == 1 and done.err.count("\n") == 1
    assert "127.0.0.1:1: Connection refused" in done.err and "'runnel serve'" in done.err


def test_what_answers_is_no_broker(runnel: Runnel) -> None:
    """A web server says so of itself, in bytes that would be a reply of a gigabyte."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())
        answering = threading.Thread(target=_answer_as_http, args=(server,))
        answering.start()
        done = runnel.inside("topic", "list", "--bootstrap-server", address)
        answering.join()
    assert done.status == 1 and done.err.count("\n") == 1
    assert f"{address}: what answered is not Kafka's protocol" in done.err


def _answer_as_http(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_delete(runnel: Runnel) -> None:
    runnel("topic", "create", "gone1")
    runnel("topic", "create", "gone2")
    assert runnel("topic", "delete", "gone1", "--yes").line == "deleted gone1"
    assert runnel("topic", "delete", "gone2", "-y", "--json").json == {"deleted": ["gone2"]}
    assert "gone" not in runnel("topic", "list").out


def test_the_server_is_found_in_the_environment(runnel: Runnel) -> None:
    done = runnel.process("topic", "list", environ={"RUNNEL_BOOTSTRAP_SERVER": "127.0.0.1:2"})
    assert done.status == 1 and "127.0.0.1:2" in done.err
