"""Options as text: what they come to, and what is said about those that do not fit."""

import pytest

from runnel.arrow.decoding import DecodeOptionError
from runnel.arrow.errors import OptionError
from runnel.spark.reads.option_table import OPTIONS
from runnel.spark.reads.options import any_options, batch_options, stream_options
from runnel.spark.reads.positions import Way
from runnel.types import TopicPartition

LEAST = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
STREAM = {**LEAST, "queryId": "q"}


def refusal(options: dict[str, str], *, stream: bool = False) -> str:
    with pytest.raises((OptionError, DecodeOptionError)) as caught:
        (stream_options if stream else batch_options)(options)
    return str(caught.value)


def test_defaults_are_those_of_the_connector() -> None:
    batch, stream = batch_options(LEAST), stream_options(STREAM)
    assert (batch.start.way, batch.end.way) == (Way.EARLIEST, Way.LATEST)
    assert stream.start.way == Way.LATEST
    assert batch.fail_on_data_loss
    assert not batch.include_headers
    assert not batch.read_committed
    assert batch.poll_timeout_ms == 120_000
    assert stream.max_trigger_delay_ms == 15 * 60_000
    assert stream.commit_group


def test_names_are_known_in_any_case() -> None:
    options = {
        "KAFKA.BOOTSTRAP.SERVERS": "localhost:9092",
        "SUBSCRIBE": " b, a,",
        "INCLUDEHEADERS": "True",
        "maxoffsetspertrigger": "5",
        "queryid": "q",
    }
    found = stream_options(options)
    assert found.subscription.topics == ("a", "b")
    assert found.include_headers
    assert found.max_offsets == 5


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"maxOffsetPerTrigger": "1"}, "did you mean maxOffsetsPerTrigger?"),
        ({"zzz": "1"}, "unknown option zzz"),
        ({"kafka.bootstrap.server": "x"}, "did you mean kafka.bootstrap.servers?"),
        ({"assign": '{"a":[0]}'}, "Only one of the following options can be specified"),
        ({"includeHeaders": "yes"}, "includeHeaders=yes is not one of true, false"),
        ({"failOnDataLoss": "1"}, "failOnDataLoss=1"),
        ({"minPartitions": "0"}, "minPartitions must be positive"),
        ({"minPartitions": "many"}, "minPartitions=many is not a whole number"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
        ({"startingOffsets": "begin"}, 'Expected earliest, latest or e.g. {"topicA"'),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "-3 of a-0 is no offset"),
        ({"startingOffsets": '{"a":[0]}'}, "Expected e.g."),
        ({"startingOffsets": "{"}, "Expected e.g."),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp=yesterday"),
        ({"startingOffsetsByTimestamp": "{}x"}, "Expected e.g."),
        ({"startingOffsetsByTimestampStrategy": "skip"}, "one of error, latest"),
        ({"isolation": "dirty"}, "one of read_uncommitted, read_committed"),
        ({"kafka.isolation.level": "dirty"}, "kafka.isolation.level=dirty"),
        ({"kafka.auto.offset.reset": "earliest"}, "'auto.offset.reset' is not supported"),
        ({"kafka.enable.auto.commit": "true"}, "'enable.auto.commit' is not supported"),
        ({"kafka.interceptor.classes": "x"}, "'interceptor.classes' is not supported"),
        ({"kafka.key.deserializer": "x"}, "keys are deserialized as byte arrays"),
        ({"kafka.value.deserializer": "x"}, "values are deserialized as byte arrays"),
        ({"kafka.security.protocol": "SSL"}, "only PLAINTEXT"),
        ({"kafka.bootstrap.servers": "localhost"}, "is not HOST:PORT"),
        ({"readMode": "disk"}, "one of auto, broker, local"),
        ({"decode": "xml"}, "decode=xml"),
    ],
)
def test_a_refusal_names_option_value_and_what_to_write(given: dict[str, str], says: str) -> None:
    assert says in refusal({**LEAST, **given})


def test_a_secret_is_never_in_a_message() -> None:
    said = refusal({**LEAST, "kafka.sasl.jaas.config": "password='hunter2'"})
    assert "kafka.sasl.jaas.config" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets for a-0 can't be latest"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "ending offset for a-0 can't be earliest"),
        (
            {"startingOffsets": '{"a":{"0":1}}', "endingOffsets": '{"a":{"1":1}}'},
            "should have the same topic-partitions",
        ),
        (
            {"startingOffsets": '{"a":{"0":7}}', "endingOffsets": '{"a":{"0":3}}'},
            "The specified start offset 7 is greater than the end offset 3",
        ),
    ],
)
def test_what_a_batch_cannot_do(given: dict[str, str], says: str) -> None:
    assert says in refusal({**LEAST, **given})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        ({"endingOffsetsByTimestamp": "{}"}, "ending timestamp not valid in streaming"),
        ({"endingTimestamp": "1"}, "ending timestamp not valid in streaming"),
        ({"pushdown": "true"}, "pushdown is for batch reads"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "is higher than the"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay=soon is not a time"),
        ({"maxBytesPerTrigger": "much"}, "maxBytesPerTrigger=much is not a size"),
        ({"partition.metadata.cache.ttl.ms": "0"}, "or -1 to disable caching"),
    ],
)
def test_what_a_stream_cannot_do(given: dict[str, str], says: str) -> None:
    assert says in refusal({**STREAM, **given}, stream=True)


def test_a_stream_without_a_name_is_told_why_it_needs_one() -> None:
    said = refusal(LEAST, stream=True)
    assert "queryId" in said
    assert "checkpoint" in said


def test_how_the_group_is_named() -> None:
    assert stream_options(STREAM).group == "spark-runnel-q"
    assert stream_options({**STREAM, "groupIdPrefix": "billing"}).group == "billing-q"
    assert stream_options({**STREAM, "kafka.group.id": "g"}).group == "g"
    assert stream_options({**LEAST, "groupId": "g"}).group == "g"


def test_one_timestamp_goes_before_many_and_both_before_offsets() -> None:
    every = {
        "startingOffsets": '{"a":{"0":1}}',
        "startingOffsetsByTimestamp": '{"a":{"0":2}}',
        "startingTimestamp": "3",
    }
    assert batch_options({**LEAST, **every}).start.timestamp_ms == 3
    del every["startingTimestamp"]
    start = batch_options({**LEAST, **every}).start
    assert start.timestamps_ms == {TopicPartition("a", 0): 2}
    del every["startingOffsetsByTimestamp"]
    assert batch_options({**LEAST, **every}).start.offsets.by_partition == {
        TopicPartition("a", 0): 1
    }


def test_times_and_sizes_have_units() -> None:
    found = stream_options({**STREAM, "maxTriggerDelay": "90s", "maxBytesPerTrigger": "64m"})
    assert found.max_trigger_delay_ms == 90_000
    assert found.max_bytes == 64 << 20


def test_the_pattern_is_not_anchored() -> None:
    found = batch_options(
        {"kafka.bootstrap.servers": "localhost:1", "subscribePattern": "ord.rs"}
    ).subscription
    assert found.matches("my-orders-2")
    assert not found.matches("order")
    pattern = {"kafka.bootstrap.servers": "localhost:1", "subscribePattern": "("}
    assert "is no regular expression of Python" in refusal(pattern)


def test_every_example_in_the_table_is_accepted() -> None:
    others = {"subscribe", "subscribePattern", "assign", "deadLetterTopic", "badRecords", "decode"}
    given = {
        name: option.example
        for name, option in OPTIONS.items()
        if name not in others and "." not in name
    }
    any_options({**LEAST, **given})
