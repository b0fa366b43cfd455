"""The comparison of Kafka's tools: it may pass over few fields, and nothing else."""

import pytest

from tests.compat.tools.allowed import FIELDS, normalised
from tests.compat.tools.commands import TOOLS, commands
from tests.compat.tools.tools_suite import Printed, Run, difference

DESCRIBED = (
    "Topic: orders\tTopicId: {id}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: a=5\n"
    "\tTopic: orders\tPartition: 0\tLeader: {leader}\tReplicas: 1\tIsr: 1\n"
)


def test_at_most_fifteen_fields_each_with_its_reason() -> None:
    assert len(FIELDS) <= 15
    assert len({field.name for field in FIELDS}) == len(FIELDS)
    assert all(field.reason for field in FIELDS)


def test_every_tool_is_asked_something() -> None:
    assert {command.tool.lstrip("&!") for command in commands()} == TOOLS.keys()


def test_ids_and_addresses_may_differ() -> None:
    one = normalised(DESCRIBED.format(id="4L6g3nShT-eMCtK--X86sw", leader=1), "/one")
    other = normalised(DESCRIBED.format(id="41XYcdTBT4aUpVvLYq0_dw", leader=1), "/other")
    assert difference(one, other) == []
    assert normalised("127.0.0.1:9092 in /one/data-0", "/one/data") == ["127.0.0.1:PORT in DATA-0"]


@pytest.mark.parametrize(
    ("kafka", "other"),
    [
        (DESCRIBED.format(id="4L6g3nShT-eMCtK--X86sw", leader=1), "Leader: none"),
        ("retention.ms=5 sensitive=false synonyms={}", "retention.ms=6 sensitive=false"),
        ("\tFetch(1): 4 to 18 [usable: 18],", "\tFetch(1): 4 to 17 [usable: 17],"),
        ("Feature: metadata.version\tSupportedMaxVersion: 4.3-IV0", "Feature: metadata.version"),
        ("lines-one:0:7", "lines-one:0:8"),
        ("2000 records sent, 1.0 records/sec", "1999 records sent, 1.0 records/sec"),
        ("baseOffset: 0 count: 1 crc: 5 isvalid: true", "baseOffset: 0 count: 2 crc: 5"),
    ],
)
def test_what_a_broker_says_may_not_differ(kafka: str, other: str) -> None:
    assert difference(normalised(kafka, "/data"), normalised(other, "/data"))


def test_a_status_an_error_and_a_time_out_count() -> None:
    good = Run("/data", [Printed(0, "same\n", "")])
    for bad in (Printed(1, "same\n", ""), Printed(0, "same\n", "oh\n"), Printed(-2, "same\n", "")):
        assert difference(good.lines(0), Run("/data", [bad]).lines(0))
