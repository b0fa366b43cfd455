"""What Kafka's perf tools print is read right, and its settings are whole."""

import re
from itertools import pairwise

import pytest

from bench.kafka import POM, PROPERTIES, kafka_version, parse_consumer_perf, parse_producer_perf
from tests.support.kafka_tools import KAFKA_POM, KafkaToolError

PRODUCER = """\
Warmup first 60000 records. Steady state results will print after the complete test summary.
300000 records sent, 109011.627907 records/sec (106.46 MB/sec), 13.14 ms avg latency, 520.00 ms max
240000 steady state records sent, 145366.444579 records/sec (141.96 MB/sec), 13.45 ms avg latency
"""
CONSUMER = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-15 11:20:02:706, 2026-11-15 11:20:12:839, 100.0, 10.0, 102400, 10240.0, 5000, 5133, 20.0, 9
"""


def test_the_steady_state_of_the_producer_counts() -> None:
    assert parse_producer_perf(PRODUCER) == 145366.444579
    with pytest.raises(KafkaToolError):
        parse_producer_perf(PRODUCER.splitlines()[1])


def test_the_consumer_counts_in_units_of_two() -> None:
    assert parse_consumer_perf(CONSUMER) == pytest.approx(20.97152)


def test_a_consumer_that_gave_up_is_no_figure() -> None:
    with pytest.raises(KafkaToolError):
        parse_consumer_perf("WARNING: Exiting before consuming the expected number\n" + CONSUMER)


def test_both_poms_bring_the_same_kafka() -> None:
    assert f"<kafka.version>{kafka_version()}<" in KAFKA_POM.read_text()
    assert kafka_version() in re.findall(r"4\.3\.\d+", POM.read_text())


def test_every_departure_has_its_reason() -> None:
    departures = PROPERTIES.read_text().partition("---- 2. Departures\n")[2].strip().splitlines()
    assert departures
    assert departures[0].startswith("#")
    for before, line in pairwise(departures):
        assert line.startswith("#") or before.startswith("#"), f"{line}: why?"
