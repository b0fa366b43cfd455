"""`runnel logs` on a real broker; a consumer that looks at every record is the oracle."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runnel.cli import log_tail
from runnel.cli.app import main
from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from runnel.client.cluster import Cluster
from runnel.logs.filters import LogRecord
from runnel.logs.index import Span
from runnel.logs.topics import BrokerSource
from tests.support.command import Runnel, command
from tests.support.process import BrokerProcess, StartBroker

LEVELS = ["debug", "info", "info", "info", "warning", "error"]
WORDS = ["payment", "failed", "order", "retry", "timeout", "card", "declined"]


def line(chance: random.Random, number: int) -> bytes:
    document = {
        "level": chance.choice(LEVELS),
        "service": chance.choice(["shop", "billing"]),
        "message": " ".join(chance.choices(WORDS, k=4)) + f" #{number}",
        "fields": {"user": chance.randrange(20)},
    }
    return json.dumps(document).encode()


def fill(bootstrap: str, topic: str, count: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    with Producer(ProducerConfig(bootstrap)) as producer:
        producer.send_batch(topic, [line(chance, number) for number in range(count)])


def consumed(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    with Consumer(ConsumerConfig(bootstrap)) as consumer:
        consumer.subscribe(topic)
        return [json.loads(message.text) for message in consumer.until_end()]


def wanted(rows: list[dict[str, Any]]) -> list[str]:
    """What `grep` would find for the query of these tests."""
    return sorted(
        row["message"]
        for row in rows
        if "payment failed" in row["message"]
        and "retry" not in row["message"]
        and row["level"] in ("warning", "error")
        and row["fields"]["user"] < 10
        and row["service"] == "shop"
    )


ARGUMENTS = (
    *("logs", "search", "logs", '"payment failed" -retry /user=.$/', "--level", "warning"),
    *("--service", "shop", "--limit", "1000", "--json", "--since", "1h"),
)


@pytest.fixture
def broker(start_broker: StartBroker) -> Iterator[BrokerProcess]:
    started = start_broker()
    yield started
    if started.is_running:
        started.stop()


def test_search_finds_what_a_consumer_finds(broker: BrokerProcess, tmp_path: Path) -> None:
    """Without an index, with one, with one that ends before the topic, and with the broker gone."""
    runnel = Runnel(broker.bootstrap)
    runnel("topic", "create", "logs", "--partitions", "3")
    fill(broker.bootstrap, "logs", 5000)
    expected = wanted(consumed(broker.bootstrap, "logs"))
    assert len(expected) > 10
    index = ("--index", str(tmp_path / "index"))

    def found(*more: str) -> list[str]:
        return sorted(row["message"] for row in runnel(*ARGUMENTS, *more).json_lines)

    assert found(*index) == expected
    told = runnel("logs", "index", "logs", *index, "--json").json
    assert told["lines_added"] == told["lines"] == 5000
    assert runnel("logs", "index", "logs", *index, "--json").json["lines_added"] == 0
    assert found(*index) == expected
    fill(broker.bootstrap, "logs", 3000, seed=2)
    more = wanted(consumed(broker.bootstrap, "logs"))
    assert found(*index) == more
    done = runnel(*ARGUMENTS, *index)
    assert "5,000 indexed and 3,000 read from the topic" in done.err
    runnel("logs", "index", "logs", *index)
    assert found(*index) == more and "8,000 indexed, " in runnel(*ARGUMENTS, *index).err
    broker.stop()
    assert found("--no-index", "--data-dir", str(broker.data_dir)) == more
    done = runnel(*ARGUMENTS, *index)
    assert sorted(row["message"] for row in done.json_lines) == more
    assert "only the index was searched: no broker answers" in done.err
    assert runnel.inside(*ARGUMENTS, "--no-index").status == 1


def test_the_newest_with_what_stands_around_them(broker: BrokerProcess, tmp_path: Path) -> None:
    runnel = Runnel(broker.bootstrap)
    lines = "\n".join(f"line {number}" for number in range(30))
    runnel("produce", "logs", stdin=lines)
    search = ("logs", "search", "logs", "--index", str(tmp_path))
    done = runnel(*search, "/[04]$/", "-B", "1", "-A", "2", "--limit", "3")
    shown = [
        text.split(" ", 2)[2].strip() for text in done.out.replace("--", "- - --").splitlines()
    ]
    assert shown == [
        *("line 13", "line 14", "line 15", "line 16", "--"),
        *("line 19", "line 20", "line 21", "line 22", "line 23", "line 24", "line 25", "line 26"),
    ]
    assert done.err.startswith("the newest 3 lines (--limit shows more)")
    (row,) = runnel(*search, '"line 20"', "-C", "1", "--json").json_lines
    assert (row["message"], row["offset"]) == ("line 20", 20)
    assert [row["before"][0]["message"], row["after"][0]["message"]] == ["line 19", "line 21"]


def test_tail(broker: BrokerProcess) -> None:
    runnel = Runnel(broker.bootstrap)
    fill(broker.bootstrap, "logs", 500)
    rows = consumed(broker.bootstrap, "logs")
    assert len(runnel("logs", "tail", "logs").out.splitlines()) == 20
    last = runnel("logs", "tail", "logs", "-n", "5", "--json").json_lines
    assert [row["message"] for row in last] == [row["message"] for row in rows[-5:]]
    errors = [
        row["message"] for row in rows if row["level"] == "error" and "order" in row["message"]
    ]
    told = runnel(
        "logs", "tail", "logs", "--level", "error", "--text", "order", "--json", "-n", "9"
    )
    assert [row["message"] for row in told.json_lines] == errors[-9:]
    since = runnel("logs", "tail", "logs", "--since", "1h", "--field", "user=7", "--json")
    assert len(since.json_lines) == sum(row["fields"]["user"] == 7 for row in rows)
    runnel("produce", "logs", stdin="WARN plain \x1b[31mtext\nnot { json")
    plain = runnel("logs", "tail", "logs", "-n", "2").out.splitlines()
    assert plain[0].endswith("WARNING  WARN plain \\x1b[31mtext") and "not { json" in plain[1]


def test_follow_shows_what_comes(broker: BrokerProcess, tmp_path: Path) -> None:
    runnel = Runnel(broker.bootstrap)
    runnel("produce", "logs", stdin="old")
    following = subprocess.Popen(
        command("logs", "tail", "logs", "-n", "1", "--follow", "--json"),
        env=runnel.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["message"] == "old"
        runnel("produce", "logs", stdin="new")
        assert json.loads(following.stdout.readline())["message"] == "new"
    finally:
        following.terminate()
        following.communicate(timeout=30)


def test_follow_shows_no_line_twice(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line comes between the first look at the topic and the search of its last lines."""
    fill(broker.bootstrap, "logs", 3)
    followed: list[dict[int, int]] = []
    bounds = BrokerSource.bounds

    def busy(source: BrokerSource) -> dict[int, Span]:
        found = bounds(source)
        fill(broker.bootstrap, "logs", 1)
        return found

    def coming(cluster: Cluster, topic: str, ends: dict[int, int]) -> Iterator[LogRecord]:
        followed.append(ends)
        return iter(())

    monkeypatch.setattr(BrokerSource, "bounds", busy)
    monkeypatch.setattr(log_tail, "_coming", coming)
    done = Runnel(broker.bootstrap)("logs", "tail", "logs", "--follow", "--json")
    shown = [row["offset"] for row in done.json_lines]
    assert shown == [0, 1, 2, 3] and followed == [{0: 4}]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("search", "logs", "x", "--level", "loud"), "--level: 'loud' is none"),
        (("search", "logs", "/(/"), "no regular expression"),
        (("search", "logs", "x", "--since", "soon"), "--since: 'soon' is no time"),
        (("search", "logs", "x", "--since", "1h", "--until", "2h"), "no time between"),
        (("search", "logs", "x", "--field", "user"), "--field wants NAME=VALUE"),
        (("tail", "logs", "--text", "!!"), "has no letter or digit"),
        (("search", "logs", "x", "--data-dir", "/nowhere"), "cannot be read"),
        (("index", "logs", "--every", "x", "--follow"), "no duration"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["logs", *arguments]) == 2
    told = capsys.readouterr().err
    assert why in told and told.count("\n") == 1


def test_a_topic_that_was_made_anew(broker: BrokerProcess, tmp_path: Path) -> None:
    runnel = Runnel(broker.bootstrap)
    index = ("--index", str(tmp_path))
    runnel("produce", "logs", stdin="before")
    runnel("logs", "index", "logs", *index)
    runnel("topic", "delete", "logs", "--yes")
    runnel("produce", "logs", stdin="after")
    for done in (
        runnel.inside("logs", "search", "logs", "before", *index),
        runnel.inside("logs", "index", "logs", *index),
    ):
        assert done.status == 1 and "--rebuild" in done.err
    runnel("logs", "index", "logs", *index, "--rebuild")
    assert "after" in runnel("logs", "search", "logs", "after", *index).out
    assert runnel.inside("logs", "index", "none", *index).status == 2
