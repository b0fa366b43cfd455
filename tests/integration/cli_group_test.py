"""`runnel group` as a user runs it, beside consumers of both protocols."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.command import Runnel, command
from tests.support.elsewhere import new_name, some_broker

PROTOCOLS = ("classic", "consumer")
JOINED_WITHIN_S = 30.0


@pytest.fixture(scope="module")
def runnel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runnel]:
    with some_broker(tmp_path_factory.mktemp("cli")) as address:
        yield Runnel(address)


@pytest.fixture
def topic(runnel: Runnel) -> str:
    """Two partitions with ten records each."""
    name = new_name("orders")
    runnel("topic", "create", name, "--partitions", "2")
    for partition in "01":
        lines = "".join(f"{number}\n" for number in range(10))
        runnel("produce", name, "--partition", partition, stdin=lines)
    return name


@contextmanager
def member(runnel: Runnel, group: str, topic: str, protocol: str) -> Iterator[Consumer]:
    """A consumer that owns both partitions, and has read all there is."""
    consumer = Consumer(
        {
            "bootstrap.servers": runnel.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "till",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        deadline, read = time.monotonic() + JOINED_WITHIN_S, 0
        while read < 20 and time.monotonic() < deadline:
            read += len(consumer.consume(20 - read, timeout=0.5))
        assert read == 20, f"{read} records"
        yield consumer
    finally:
        consumer.close()


def commit(runnel: Runnel, group: str, topic: str, *offsets: int) -> None:
    rows = [TopicPartition(topic, at, offset, "by hand") for at, offset in enumerate(offsets)]
    consumer = Consumer({"bootstrap.servers": runnel.bootstrap, "group.id": group})
    consumer.commit(offsets=rows, asynchronous=False)
    consumer.close()


def committed(runnel: Runnel, group: str) -> dict[int, int]:
    (document,) = runnel("group", "describe", group, "--json").json
    return {row["partition"]: row["committed_offset"] for row in document["partitions"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_a_member(runnel: Runnel, topic: str, protocol: str) -> None:
    group = new_name("billing")
    with member(runnel, group, topic, protocol) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        (document,) = runnel("group", "describe", group, "--json").json
        assert (document["type"], document["state"]) == (protocol, "Stable")
        assert document["total_lag"] == 6 and document["member_count"] == 1
        (row,) = document["members"]
        assert (row["client_id"], row["owned"]) == ("till", {topic: [0, 1]})
        rows = [
            (each["partition"], each["committed_offset"], each["end_offset"], each["lag"])
            for each in document["partitions"]
        ]
        assert rows == [(0, 4, 10, 6), (1, None, 10, None)]
        assert {each["client_id"] for each in document["partitions"]} == {"till"}
        assert all(each["host"].startswith("/") for each in document["partitions"])

        table = runnel("group", "describe", group).out.splitlines()
        assert "total lag    6" in table
        assert [topic, "0", "4", "10", "6", "till", row["host"]] in [line.split() for line in table]
        members = runnel("group", "describe", group, "--members").out
        assert f"{topic}:0,1" in members and row["member_id"] in members
        state = runnel("group", "describe", group, "--state").out
        assert "Stable" in state and topic not in state

        listed = runnel("group", "list", "--state", "stable", "--type", protocol, "--json").json
        expected = {"group": group, "type": protocol, "state": "Stable", "protocol": "consumer"}
        assert expected in listed
        for arguments in (
            ("delete", group, "--yes"),
            ("reset", group, "--topic", topic, "--to-earliest"),
            ("delete-offsets", group, "--topic", topic, "--yes"),
        ):
            refused = runnel.inside("group", *arguments)
            assert refused.status == 2 and "stop them first" in refused.err, refused
    assert committed(runnel, group) == {0: 4}
    assert runnel("group", "delete", group, "--yes").line == f"deleted {group}"


def test_filters(runnel: Runnel, topic: str) -> None:
    group = new_name("idle")
    commit(runnel, group, topic, 1)
    row = {"group": group, "type": "classic", "state": "Empty"}

    def listed(*arguments: str) -> bool:
        rows = runnel("group", "list", *arguments, "--json").json
        return row in [{name: each[name] for name in row} for each in rows]

    assert listed() and listed("--state", "Empty") and listed("--type", "classic")
    assert not listed("--state", "Stable") and not listed("--type", "consumer")
    assert listed("--state", "Stable", "--state", "empty")
    assert group in runnel("group", "list").out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--to-earliest"], {0: 0, 1: 0}),
        (["--to-latest"], {0: 10, 1: 10}),
        (["--to-offset", "3"], {0: 3, 1: 3}),
        (["--to-offset", "300"], {0: 10, 1: 10}),
        (["--shift-by", "-2"], {0: 3, 1: 5}),
        (["--shift-by", "-6"], {0: 0, 1: 1}),
        (["--shift-by", "4"], {0: 9, 1: 10}),
        (["--by-duration", "1h"], {0: 0, 1: 0}),
        (["--by-duration", "PT1H"], {0: 0, 1: 0}),
        (["--to-time", "@1"], {0: 0, 1: 0}),
        (["--to-time", "2124-01-31T12:00"], {0: 10, 1: 10}),
    ],
)
def test_reset(runnel: Runnel, topic: str, arguments: list[str], expected: dict[int, int]) -> None:
    group = new_name("billing")
    commit(runnel, group, topic, 5, 7)
    planned = runnel("group", "reset", group, "--all-topics", *arguments, "--json").json
    assert planned["executed"] is False
    rows = [
        (row["partition"], row["old_offset"], row["new_offset"]) for row in planned["partitions"]
    ]
    assert rows == [(0, 5, expected[0]), (1, 7, expected[1])]
    assert committed(runnel, group) == {0: 5, 1: 7}

    done = runnel("group", "reset", group, "-t", topic, *arguments, "--execute", "--yes")
    assert done.out.splitlines()[-1] == f"reset 2 partitions of {group}"
    assert committed(runnel, group) == expected


def test_reset_of_some_partitions_and_of_a_group_that_is_not_there(
    runnel: Runnel, topic: str
) -> None:
    group = new_name("new")
    planned = runnel("group", "reset", group, "-t", f"{topic}:1", "--to-offset", "2")
    assert planned.out.splitlines()[1].split() == [topic, "1", "-", "2"]
    assert "is not there yet" in planned.err and "--execute" in planned.err
    assert runnel.inside("group", "describe", group).status == 2
    runnel("group", "reset", group, "-t", f"{topic}:1", "--to-offset", "2", "--execute", "-y")
    assert committed(runnel, group) == {1: 2}


def test_delete_offsets(runnel: Runnel, topic: str) -> None:
    group = new_name("billing")
    commit(runnel, group, topic, 5, 7)
    done = runnel("group", "delete-offsets", group, "-t", f"{topic}:0", "--yes")
    assert done.line == f"deleted the offsets of {group} for {topic}-0"
    assert committed(runnel, group) == {1: 7}


def test_offsets_of_a_topic_that_is_gone_go_with_it(runnel: Runnel, topic: str) -> None:
    group = new_name("billing")
    commit(runnel, group, topic, 5, 7)
    runnel("topic", "delete", topic, "--yes")
    (document,) = runnel("group", "describe", group, "--json").json
    assert document["total_lag"] == 0
    assert {row["lag"] for row in document["partitions"]} <= {None}


@pytest.mark.parametrize(
    ("arguments", "said", "advice"),
    [
        (["describe", "absent"], "there is no group absent", "'runnel group list'"),
        (["describe", "GROUP", "--members", "--state"], "contradict", "leave one out"),
        (["delete", "absent", "--yes"], "there is no group absent", "'runnel group list'"),
        (["delete", "GROUP", "absent", "--yes"], "there is no group absent", "group list"),
        (["delete", "GROUP"], "with all committed offsets?", "add --yes"),
        (["reset", "GROUP", "--to-earliest"], "Say what to reset", "--all-topics"),
        (["reset", "GROUP", "-t", "TOPIC"], "Say where to, in one way", "--shift-by"),
        (
            ["reset", "GROUP", "-t", "TOPIC", "--to-latest", "--to-offset", "1"],
            "Say where to, in one way",
            "--to-time",
        ),
        (["reset", "GROUP", "-t", "TOPIC:9", "--to-latest"], "has no partition 9", "topic list"),
        (["reset", "GROUP", "-t", "TOPIC:x", "--to-latest"], "is no partition", "write 0"),
        (["reset", "GROUP", "-t", "absent", "--to-latest"], "there is no topic", "topic list"),
        (["reset", "GROUP", "-t", "TOPIC", "--to-time", "soon"], "is no time", "write 2026"),
        (["reset", "GROUP", "-t", "TOPIC", "--by-duration", "1"], "is no duration", "15m"),
        (["reset", "GROUP", "-t", "TOPIC:1", "--shift-by", "1"], "no committed", "--to-offset"),
        (["reset", "absent", "--all-topics", "--to-latest"], "no offsets to reset", "--topic"),
        (["reset", "GROUP", "-t", "TOPIC", "--to-latest", "--execute"], "Reset 2", "add --yes"),
        (["delete-offsets", "absent", "-t", "TOPIC", "-y"], "no group absent", "group list"),
    ],
)
def test_what_is_refused_is_told_in_one_line_and_changes_nothing(
    runnel: Runnel, refusing: tuple[str, str], arguments: list[str], said: str, advice: str
) -> None:
    group, topic = refusing
    words = [each.replace("GROUP", group).replace("TOPIC", topic) for each in arguments]
    done = runnel.inside("group", *words)
    assert done.status == 2
    assert done.err.count("\n") == 1 and said in done.err and advice in done.err
    assert committed(runnel, group) == {0: 5}


@pytest.fixture(scope="module")
def refusing(runnel: Runnel) -> tuple[str, str]:
    group, topic = new_name("kept"), new_name("kept")
    runnel("topic", "create", topic, "--partitions", "2")
    runnel("produce", topic, "--partition", "0", stdin="x\n" * 8)
    commit(runnel, group, topic, 5)
    return group, topic


def test_consuming_for_a_group_goes_on_where_it_stopped(runnel: Runnel, topic: str) -> None:
    group = new_name("reading")
    first = runnel("consume", topic, "--group", group, "--count", "3", "--json").json_lines
    assert len(first) == 3
    read = {(row["partition"], row["offset"]) for row in first}
    assert sum(committed(runnel, group).values()) == 3
    rest = runnel("consume", topic, "--group", group, "--json").json_lines
    read |= {(row["partition"], row["offset"]) for row in rest}
    assert len(rest) == 17 and read == {(at, offset) for at in (0, 1) for offset in range(10)}
    assert committed(runnel, group) == {0: 10, 1: 10}
    assert runnel("consume", topic, "--group", group).out == ""
    runnel("produce", topic, "--partition", "1", stdin="new\n")
    assert runnel("consume", topic, "--group", group, "--from", "latest").line == "new"


def test_consuming_for_a_group_that_has_members_is_refused(runnel: Runnel, topic: str) -> None:
    group = new_name("reading")
    with member(runnel, group, topic, "classic"):
        refused = runnel.inside("consume", topic, "--group", group)
    assert refused.status == 2 and refused.out == "" and "stop them first" in refused.err


def test_without_a_group_nothing_is_committed(runnel: Runnel, topic: str) -> None:
    before = runnel("group", "list", "--json").json
    assert len(runnel("consume", topic).out.splitlines()) == 20
    assert runnel("group", "list", "--json").json == before


def test_following_for_a_group_commits_when_it_is_ended(runnel: Runnel, topic: str) -> None:
    group = new_name("following")
    arguments = command("consume", topic, "--group", group, "--follow")
    with subprocess.Popen(
        arguments, env=runnel.environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(20)]
        time.sleep(1.0)  # it counts a line as printed only when it has written it
        process.send_signal(signal.SIGINT)
        assert process.wait(JOINED_WITHIN_S) == 130
    assert sorted(lines) == sorted(2 * [f"{number}\n" for number in range(10)])
    assert committed(runnel, group) == {0: 10, 1: 10}


@pytest.mark.parametrize(
    "way",
    [
        ("--by-duration", "36500d"),
        ("--by-duration", "999999999999d"),
        ("--to-time", "-999999999999d"),
        ("--to-time", "1969-12-31T23:59:59.999Z"),  # as a number -1, which asks for the end
    ],
)
def test_a_time_before_all_records_is_the_start(
    runnel: Runnel, topic: str, way: tuple[str, str]
) -> None:
    done = runnel("group", "reset", new_name("early"), "--topic", topic, *way, "--json").json
    assert [row["new_offset"] for row in done["partitions"]] == [0, 0]
