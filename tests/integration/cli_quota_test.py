"""`runnel quota` against a broker process; its effect is that of the test of quotas."""

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


def test_set_list_and_remove(runnel: Runnel) -> None:
    line = runnel("quota", "set", "--client-id", "app", "producer_byte_rate=1.5MB").line
    assert line == "set producer_byte_rate=1500000 for client-id app"
    runnel.inside("quota", "set", "-u", "alice", "--default-client-id", "request_percentage=12.5")
    runnel.inside("quota", "set", "--default-ip", "connection_creation_rate=7")
    listed = runnel.inside("quota", "list", "--json").json
    assert listed == [
        {"entity": {"client-id": None, "user": "alice"}, "quotas": {"request_percentage": 12.5}},
        {"entity": {"client-id": "app"}, "quotas": {"producer_byte_rate": 1_500_000.0}},
        {"entity": {"ip": None}, "quotas": {"connection_creation_rate": 7.0}},
    ]
    table = runnel.inside("quota", "list").out.splitlines()
    assert table[0].split() == ["ENTITY", "QUOTA", "VALUE", "OF"]
    assert table[2].split()[:4] == ["client-id", "app", "producer_byte_rate", "1500000"]
    assert len(runnel.inside("quota", "list", "--user", "alice", "--json").json) == 1
    assert runnel.inside("quota", "list", "--default-user", "--json").json == []
    gone = runnel.inside("quota", "remove", "--client-id", "app", "--yes")
    assert gone.line == "removed producer_byte_rate of client-id app"
    arguments = ("-u", "alice", "--default-client-id", "request_percentage", "-y", "--json")
    assert runnel.inside("quota", "remove", *arguments).json["removed"] == ["request_percentage"]
    runnel.inside("quota", "remove", "--default-ip", "--yes")
    empty = runnel.inside("quota", "list")
    assert (empty.out, empty.status) == ("", 0) and "quota set" in empty.err


def test_only_validating_changes_nothing(runnel: Runnel) -> None:
    done = runnel.inside("quota", "set", "-c", "x", "consumer_byte_rate=1KiB", "--validate-only")
    assert done.line == "could set consumer_byte_rate=1024 for client-id x"
    assert runnel.inside("quota", "list", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["set", "producer_byte_rate=1"], "Whose quotas? Give --user"),
        (["set", "--user", "a", "--default-user", "producer_byte_rate=1"], "exclude each other"),
        (["set", "--user", "a", "speed=1"], "choose among producer_byte_rate"),
        (["set", "--user", "a", "producer_byte_rate=fast"], "as 1048576 or 1MB"),
        (["set", "--user", "a", "request_percentage=1MB"], "wants a number above 0, as 12.5"),
        (["set", "--user", "a", "producer_byte_rate=0"], "must be greater than 0"),
        (["set", "--user", "a", "producer_byte_rate"], "wants NAME=VALUE"),
        (["set", "--user", "a", "producer_byte_rate=1.5"], "cannot be a fractional value"),
        (["set", "--ip", "nowhere", "connection_creation_rate=1"], "is not a valid IP address"),
        (["set", "--ip", "::1", "producer_byte_rate=1"], "Invalid configuration key"),
        (["set", "--ip", "::1", "--user", "a", "connection_creation_rate=1"], "not be combined"),
        (["remove", "--user", "nobody", "--yes"], "'runnel quota list' shows what there is"),
        (["remove", "--user", "held", "consumer_byte_rate"], "has no consumer_byte_rate"),
        (["remove", "--user", "held"], "add --yes"),
    ],
)
def test_errors_say_what_to_do_and_change_nothing(
    runnel: Runnel, arguments: list[str], said: str
) -> None:
    runnel.inside("quota", "set", "--user", "held", "producer_byte_rate=5")
    before = runnel.inside("quota", "list", "--json").json
    done = runnel.inside("quota", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err and len(done.err.splitlines()) == 1
    assert runnel.inside("quota", "list", "--json").json == before
    runnel.inside("quota", "remove", "--user", "held", "--yes")
