"""`runnel config`, and the commands of `runnel topic` that touch settings and partitions."""

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


def settings(runnel: Runnel, *arguments: str) -> dict[str, str]:
    rows = runnel("config", "describe", *arguments, "--json").json
    return {row["name"]: row["value"] for row in rows}


def test_set_describe_unset_of_a_topic(runnel: Runnel) -> None:
    runnel("topic", "create", "t1", "--config", "cleanup.policy=compact")
    done = runnel("config", "set", "--topic", "t1", "retention.ms=1000", "segment.bytes=2000000")
    assert done.line == "altered t1: retention.ms=1000, segment.bytes=2000000"
    own = {"cleanup.policy": "compact", "retention.ms": "1000", "segment.bytes": "2000000"}
    assert settings(runnel, "--topic", "t1") == own
    table = runnel("config", "describe", "--topic", "t1", "retention.ms").out.splitlines()
    assert table[1].split()[:4] == ["retention.ms", "1000", "dynamic", "topic"]
    everything = settings(runnel, "--topic", "t1", "--all")
    assert len(everything) > 20 and everything["max.message.bytes"] == "1048588"
    runnel("config", "unset", "--topic", "t1", "retention.ms", "cleanup.policy")
    assert settings(runnel, "--topic", "t1") == {"segment.bytes": "2000000"}
    assert settings(runnel, "--topic", "t1", "retention.ms") == {"retention.ms": "604800000"}


def test_settings_of_brokers(runnel: Runnel) -> None:
    done = runnel("config", "set", "--broker", "all", "log.retention.ms=7200000")
    assert done.line == "altered all brokers: log.retention.ms=7200000"
    assert settings(runnel, "--broker", "0", "log.retention.ms") == {"log.retention.ms": "7200000"}
    runnel("config", "set", "--broker", "0", "log.retention.ms=3600000")
    runnel("config", "unset", "--broker", "all", "log.retention.ms")
    assert settings(runnel, "--broker", "0", "log.retention.ms") == {"log.retention.ms": "3600000"}
    runnel("config", "unset", "--broker", "0", "log.retention.ms")
    row = runnel("config", "describe", "--broker", "0", "log.dirs", "--json").json[0]
    assert row["read_only"] and row["source"] == "static broker"


def test_alter_and_describe_a_topic(runnel: Runnel) -> None:
    runnel("topic", "create", "t2", "--partitions", "2", "-c", "retention.ms=5")
    runnel("produce", "t2", "--partition", "1", stdin="a\nb\n")
    done = runnel("topic", "alter", "t2", "-c", "max.message.bytes=5000", "-d", "retention.ms")
    assert done.line == "altered t2: max.message.bytes=5000, retention.ms back to its default"
    (described,) = runnel("topic", "describe", "t2", "--json").json
    assert described["configs"] == {"max.message.bytes": "5000"}
    assert described["partitions"][1] == {
        "partition": 1,
        "leader": 0,
        "replicas": [0],
        "in_sync": [0],
        "start_offset": 0,
        "end_offset": 2,
    }
    lines = runnel("topic", "describe", "t2").out.splitlines()
    assert lines[0].split() == ["topic", "t2"]
    assert lines[-1].split() == ["1", "0", "0", "0", "0", "2"]


def test_add_partitions(runnel: Runnel) -> None:
    runnel("topic", "create", "t3", "--partitions", "2")
    validated = runnel("topic", "add-partitions", "t3", "--partitions", "9", "--validate-only")
    assert validated.line == "t3 could have 9 partitions"
    assert runnel("topic", "add-partitions", "t3", "-p", "5").line == "t3 has 5 partitions"
    (described,) = runnel("topic", "describe", "t3", "--json").json
    assert len(described["partitions"]) == 5
    fewer = runnel.inside("topic", "add-partitions", "t3", "--partitions", "4")
    assert fewer.status == 2 and "they can only become more" in fewer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe"], "Give either --topic TOPIC or --broker ID"),
        (["describe", "--topic", "t", "--broker", "0"], "Give either"),
        (["describe", "--topic", "absent"], "absent"),
        (["describe", "--topic", "t", "no.such"], "There is no setting no.such"),
        (["describe", "--broker", "one"], "wants a number or 'all'"),
        (["describe", "--broker", "77"], "there is no broker 77; the cluster has 0"),
        (["set", "--topic", "t", "retention.ms"], "wants NAME=VALUE"),
        (["set", "--topic", "t", "retention.ms=soon"], "retention.ms"),
        (["set", "--topic", "t", "no.such=1"], "no.such"),
        (["set", "--topic", "t", "retention.ms=1", "no.such=1"], "no.such"),
        (["set", "--broker", "0", "log.dirs=/elsewhere"], "log.dirs"),
        (["set", "--topic", "t"], "Missing argument"),
        (["unset", "--topic", "t", "retentionms"], "did you mean retention.ms?"),
        (["unset", "--topic", "t", "retention.ms", "no.such"], "There is no setting no.such"),
        (["unset", "--topic", "absent", "no.such"], "absent"),
        (["unset", "--broker", "0", "no.such"], "There is no setting no.such"),
        (["unset", "--broker", "all", "log.retentio.ms"], "did you mean log.retention.ms?"),
    ],
)
def test_what_is_refused_changes_nothing(runnel: Runnel, arguments: list[str], said: str) -> None:
    runnel("topic", "create", "t", "--if-not-exists")
    done = runnel.inside("config", *arguments)
    assert done.status == 2, done
    assert done.out == "" and done.err.count("\n") == 1 and said in done.err
    assert settings(runnel, "--topic", "t") == {}


def test_a_name_to_take_away_that_nobody_knows(runnel: Runnel) -> None:
    runnel("topic", "create", "t4")
    done = runnel.inside("topic", "alter", "t4", "-c", "retention.ms=5", "-d", "no.such")
    assert done.status == 2 and "There is no setting no.such" in done.err
    assert settings(runnel, "--topic", "t4") == {}
