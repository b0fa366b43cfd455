"""What is refused, and that the error names what was wrong with it."""

import json
from collections.abc import Callable

from tests.support.spark_stage import FIRST_MS, Case, Stage, refusal

# Short enough for a test; the connector would wait for minutes.
SOON = {"kafka_default_api_timeout_ms": 3_000, "kafka_request_timeout_ms": 2_000}


def options(stage: Stage) -> object:
    """Mistakes that are seen before any broker is asked."""
    topic = stage.topic("options")

    def reading(**given: object) -> Callable[[], object]:
        return lambda: stage.read(**given).count()

    return [
        refusal(reading(), "subscribe", "assign"),
        refusal(reading(subscribe=topic, assign=json.dumps({topic: [0]})), "subscribe", "assign"),
        refusal(reading(subscribe=""), "subscribe|topic"),
        refusal(reading(subscribe=topic, startingOffsets="latest"), "starting ?Offset"),
        refusal(reading(subscribe=topic, endingOffsets="earliest"), "ending ?Offset"),
        refusal(reading(subscribe=topic, minPartitions="0"), "minPartitions"),
        refusal(reading(subscribe=topic, kafka_auto_offset_reset="latest"), "auto.offset.reset"),
        refusal(reading(subscribe=topic, kafka_key_deserializer="x"), "key.deserializer"),
        refusal(reading(subscribe=topic, kafka_enable_auto_commit="true"), "enable.auto.commit"),
    ]


def no_bootstrap_servers(stage: Stage) -> object:
    reader = stage.spark.read.format(stage.format).option("subscribe", "any")
    return refusal(lambda: reader.load().count(), "kafka.bootstrap.servers")


def missing_topic(stage: Stage) -> object:
    """The connector does not name it, but says as much."""
    name = f"nobody-made-{stage.format}"
    words = name if stage.format == "runnel" else "does not host this topic"
    return refusal(lambda: stage.read(subscribe=name, **SOON).count(), words)


def offsets_that_do_not_fit(stage: Stage) -> object:
    """Every partition has to have an offset, and only those that there are."""
    topic = stage.topic("misfit", 2)
    stage.send(topic, 3, 2)

    def starting(offsets: object) -> Callable[[], object]:
        text = offsets if isinstance(offsets, str) else json.dumps({topic: offsets})
        return lambda: stage.read(subscribe=topic, startingOffsets=text).count()

    return [
        refusal(starting({"0": 1}), "partition"),
        refusal(starting({"0": 1, "1": 1, "2": 1}), "partition"),
        refusal(starting("{nonsense"), "nonsense|JSON|offset"),
    ]


def no_record_at_that_time(stage: Stage) -> object:
    topic = stage.topic("too-late")
    stage.send(topic, 3)
    late = FIRST_MS + 1_000_000
    return [
        refusal(lambda: stage.read(subscribe=topic, startingTimestamp=late).count(), "timestamp"),
        stage.read(
            subscribe=topic, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest"
        ).count(),
    ]


def lost_data(stage: Stage) -> object:
    topic = stage.topic("lost")
    stage.send(topic, 20)
    stage.delete_records(topic, 10)
    start = json.dumps({topic: {"0": 3}})
    frame = stage.read(subscribe=topic, startingOffsets=start)
    return refusal(frame.count, "failOnDataLoss")


def nobody_listens(stage: Stage) -> object:
    """A port that nobody has; the address is in the error, and the wait has an end."""
    options = stage.options({"subscribe": "any", **SOON})
    options["kafka.bootstrap.servers"] = "127.0.0.1:1"
    reader = stage.spark.read.format(stage.format).options(**options)
    return refusal(lambda: reader.load().count(), "time|127.0.0.1:1")


CASES = [
    Case("options that make no sense", options),
    Case("no kafka.bootstrap.servers", no_bootstrap_servers),
    Case("a topic that is not there", missing_topic),
    Case("offsets that do not fit the topic", offsets_that_do_not_fit),
    Case("a starting time after the last record", no_record_at_that_time),
    Case("failOnDataLoss=true", lost_data),
    Case("a broker that does not answer", nobody_listens),
]
