"""Runnel's own commands against a broker: with `--broker kafka` they prove to be for any Kafka.

Run as `python -m tests.compat.command_line.cli_suite HOST:PORT`.
"""

import json
import sys
from functools import partial

from tests.compat.checks import COMPRESSIONS, FIRST_TIMESTAMP_MS, Checks, topic_name
from tests.support.command import Runnel

COUNT = 5000


class Suite:
    def __init__(self, bootstrap: str) -> None:
        self._runnel = Runnel(bootstrap)

    def topics(self) -> None:
        topic = topic_name("cli", "topics")
        self._runnel("topic", "create", topic, "-p", "2", "-c", "retention.ms=1234567")
        (described,) = self._runnel("topic", "describe", topic, "--json").json
        assert described["configs"]["retention.ms"] == "1234567", described
        assert [row["end_offset"] for row in described["partitions"]] == [0, 0], described
        self._runnel("topic", "add-partitions", topic, "--partitions", "5")
        rows = {row["topic"]: row for row in self._runnel("topic", "list", "--json").json}
        assert rows[topic]["partitions"] == 5, rows
        self._runnel("topic", "delete", topic, "--yes")
        gone = self._runnel.inside("topic", "describe", topic)
        assert gone.status == 2 and "there is no topic" in gone.err, gone

    def settings(self) -> None:
        topic = topic_name("cli", "settings")
        self._runnel("topic", "create", topic)
        self._runnel("config", "set", "--topic", topic, "max.message.bytes=5000")
        row = self._runnel("config", "describe", "--topic", topic, "max.message.bytes", "--json")
        assert row.json[0]["value"] == "5000" and row.json[0]["source"] == "dynamic topic", row
        self._runnel("config", "unset", "--topic", topic, "max.message.bytes")
        row = self._runnel("config", "describe", "--topic", topic, "max.message.bytes", "--json")
        assert row.json[0]["value"] == "1048588", row
        everything = self._runnel("config", "describe", "--topic", topic, "--all", "--json").json
        assert len(everything) > 20, everything

    def brokers(self) -> None:
        name = "log.cleaner.backoff.ms"
        self._runnel("config", "set", "--broker", "all", f"{name}=12345")
        rows = self._runnel("config", "describe", "--broker", "all", "--json").json
        assert {row["name"]: row["value"] for row in rows}[name] == "12345", rows
        self._runnel("config", "unset", "--broker", "all", name)

    def refusals(self) -> None:
        topic = topic_name("cli", "refusals")
        self._runnel("topic", "create", topic)
        for arguments, said in (
            (("topic", "create", topic), "already exists"),
            (("topic", "create", "a/b"), "invalid"),
            (("topic", "create", f"{topic}-x", "-r", "9"), "replication"),
            (("topic", "create", f"{topic}-x", "-c", "no.such=1"), "no.such"),
            (("config", "set", "--topic", topic, "retention.ms=soon"), "retention.ms"),
            (("topic", "add-partitions", topic, "-p", "1"), "partition"),
            (("consume", topic, "--partition", "77"), "has no partition 77"),
        ):
            done = self._runnel.inside(*arguments)
            assert done.status == 2 and said in done.err, (arguments, done)
            assert done.out == "" and done.err.count("\n") == 1, done

    def reads_back_equal(self, compression: str) -> None:
        topic = topic_name("cli", compression)
        self._runnel("topic", "create", topic, "--partitions", "3")
        lines = [
            json.dumps(
                {
                    "key": None if number % 10 == 0 else f"key {number}",
                    "value": None if number % 7 == 0 else f"value {number}",
                    "timestamp": FIRST_TIMESTAMP_MS + number,
                    "headers": [["colour", "blue"], ["colour", None]],
                    "partition": number % 3,
                }
            )
            for number in range(COUNT)
        ]
        arguments = ("produce", topic, "--format", "json", "-z", compression)
        self._runnel(*arguments, stdin="\n".join(lines))
        rows = self._runnel("consume", topic, "--json").json_lines
        read = sorted(rows, key=lambda row: int(row["timestamp"]))
        for row in read:
            del row["offset"], row["topic"]
        assert read == [json.loads(line) for line in lines], f"{len(read)} read, or they differ"

    def places(self) -> None:
        topic = topic_name("cli", "places")
        self._runnel("topic", "create", topic, "--partitions", "1")
        lines = [
            json.dumps({"value": str(at), "timestamp": FIRST_TIMESTAMP_MS + at}) for at in range(10)
        ]
        self._runnel("produce", topic, "--format", "json", stdin="\n".join(lines))
        for begin, read in (
            ("beginning", "0123456789"),
            ("latest", ""),
            ("7", "789"),
            ("-2", "89"),
            (f"@{FIRST_TIMESTAMP_MS + 4}", "456789"),
            ("-50m", ""),
        ):
            found = self._runnel("consume", topic, "--from", begin, "--format", "%v").out
            assert found == read, (begin, found)

    def creates_on_first_use(self) -> None:
        topic = topic_name("cli", "first-use")
        self._runnel("produce", topic, stdin="hello\n")
        assert self._runnel("consume", topic).out == "hello\n"


def main() -> None:
    suite = Suite(sys.argv[1])
    checks = Checks(())
    checks.check("topic create, describe, add-partitions, list, delete", suite.topics)
    checks.check("config set, describe, unset of a topic", suite.settings)
    checks.check("config set, describe, unset of brokers", suite.brokers)
    checks.check("refusals: one line, status 2", suite.refusals)
    for compression in COMPRESSIONS:
        checks.check(
            f"produce, consume: {compression}", partial(suite.reads_back_equal, compression)
        )
    checks.check("consume from every kind of place", suite.places)
    checks.check("produce creates a topic on first use", suite.creates_on_first_use)
    checks.end()


if __name__ == "__main__":
    main()
