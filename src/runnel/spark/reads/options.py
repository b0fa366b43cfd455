"""The options of a read, checked: what Spark hands over as text, as values."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from runnel.arrow.decoding import Decoding
from runnel.arrow.errors import OptionError
from runnel.client.cluster import addresses_of
from runnel.spark.kafka_settings import client_settings
from runnel.spark.reads.option_table import BATCH, BOTH, STREAM
from runnel.spark.reads.option_values import Values
from runnel.spark.reads.positions import Position, Way, check_batch, ending, starting
from runnel.spark.reads.subscription import Subscription, subscription

GROUP_PREFIX: Final = "spark-runnel"
MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000
POLL_TIMEOUT_MS: Final = 120_000
READ_MODES: Final = ("auto", "broker", "local")
ISOLATION_LEVELS: Final = ("read_uncommitted", "read_committed")
NOT_IN_STREAMS: Final = {
    "endingOffsets": "ending offset not valid in streaming queries; leave out endingOffsets",
    "endingOffsetsByTimestamp": (
        "ending timestamp not valid in streaming queries; leave out endingOffsetsByTimestamp"
    ),
    "endingTimestamp": (
        "ending timestamp not valid in streaming queries; leave out endingTimestamp"
    ),
    "pushdown": "pushdown is for batch reads: Spark hands no filters to a stream; leave it out",
}
NO_QUERY_ID: Final = (
    "a stream needs the option queryId, a name that stays the same at every start of the query,"
    ' such as .option("queryId", "orders-to-lake"). Spark does not tell a Python source where its'
    " checkpoint is, so where the first batch begins is kept in a consumer group of that name;"
    " without it a crash during the first batch could skip records. (kafka.group.id names the"
    " group itself.)"
)


@dataclass(frozen=True)
class SourceOptions:
    """What batch and stream have in common, and what only a stream uses."""

    client: Mapping[str, str]  # `kafka.*` without the prefix
    subscription: Subscription
    start: Position
    end: Position
    include_headers: bool
    fail_on_data_loss: bool
    read_committed: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    poll_timeout_ms: int
    retries: int
    retry_interval_ms: int
    read_mode: str
    path: str | None
    decode: Decoding | None
    pushdown: bool
    timestamp_disorder_ms: int | None
    # Of a stream.
    group: str
    commit_group: bool
    topic_ids: bool
    max_offsets: int | None
    max_bytes: int | None
    min_offsets: int | None
    max_trigger_delay_ms: int
    metadata_ttl_ms: int

    @property
    def fingerprint(self) -> str:
        """Of what decides where a stream begins: another one makes an anchor worth nothing."""
        start = self.start
        told = (
            self.subscription,
            start.way.value,
            sorted(start.offsets.by_partition.items()),
            sorted(start.timestamps_ms.items()),
            start.timestamp_ms,
        )
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def any_options(options: Mapping[str, str]) -> SourceOptions:
    """Where it is not known yet which kind of read it will be. Raises OptionError."""
    values = Values(options)
    values.refuse_unknown(BOTH, {})
    return _source_options(values, options, Way.EARLIEST)


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    """Raises OptionError."""
    values = Values(options)
    values.refuse_unknown(BATCH, {})
    found = _source_options(values, options, Way.EARLIEST)
    check_batch(found.start, found.end)
    return found


def stream_options(options: Mapping[str, str]) -> SourceOptions:
    """Raises OptionError, also where neither a query nor a group has a name."""
    values = Values(options)
    values.refuse_unknown(STREAM, NOT_IN_STREAMS)
    found = _source_options(values, options, Way.LATEST)
    if not found.group:
        raise OptionError(NO_QUERY_ID)
    if "bootstrap.servers" not in found.client:
        raise OptionError(
            "a stream needs kafka.bootstrap.servers, for example localhost:9092: path alone is for"
            " batch reads, as the group of the query is kept by a broker"
        )
    if found.min_offsets and found.max_offsets and found.min_offsets > found.max_offsets:
        raise OptionError(
            f"The value of minOffsetPerTrigger({found.min_offsets}) is higher than the"
            f" maxOffsetsPerTrigger({found.max_offsets})."
        )
    return found


def _source_options(
    values: Values, options: Mapping[str, str], default_start: Way
) -> SourceOptions:
    client = client_settings(options)
    subscribed = subscription(values)
    path = values.text("path") or None
    _check_bootstrap(client, path)
    ttl_ms = values.number("partition.metadata.cache.ttl.ms", -1, least=-1)
    if ttl_ms == 0:
        raise OptionError(
            "Option 'partition.metadata.cache.ttl.ms' must be a positive number of milliseconds,"
            " or -1 to disable caching"
        )
    delay_ms = values.time_ms("maxTriggerDelay")
    return SourceOptions(
        client=client,
        subscription=subscribed,
        start=starting(values, default_start),
        end=ending(values),
        include_headers=values.boolean("includeHeaders", default=False),
        fail_on_data_loss=values.boolean("failOnDataLoss", default=True),
        read_committed=_isolation(values, client) == "read_committed",
        min_partitions=values.count("minPartitions"),
        max_records_per_partition=values.count("maxRecordsPerPartition"),
        poll_timeout_ms=values.number("kafkaConsumer.pollTimeoutMs", POLL_TIMEOUT_MS, least=1),
        retries=values.number("fetchOffset.numRetries", 3),
        retry_interval_ms=values.number("fetchOffset.retryIntervalMs", 10),
        read_mode=values.choice("readMode", READ_MODES, "auto"),
        path=path,
        decode=_decoding(values),
        pushdown=values.boolean("pushdown", default=False),
        timestamp_disorder_ms=values.time_ms("timestampDisorder"),
        group=_group(values, client),
        commit_group=values.boolean("commitGroup", default=True),
        topic_ids=values.boolean("topicIds", default=True),
        max_offsets=values.count("maxOffsetsPerTrigger"),
        max_bytes=values.size_bytes("maxBytesPerTrigger"),
        min_offsets=values.count("minOffsetsPerTrigger"),
        max_trigger_delay_ms=MAX_TRIGGER_DELAY_MS if delay_ms is None else delay_ms,
        metadata_ttl_ms=ttl_ms,
    )


def _check_bootstrap(client: Mapping[str, str], path: str | None) -> None:
    bootstrap = client.get("bootstrap.servers")
    if bootstrap:
        try:
            addresses_of(bootstrap)
        except ValueError as error:
            raise OptionError(
                f"kafka.bootstrap.servers={bootstrap}: {error}; write for example localhost:9092"
            ) from None
    elif path is None:
        raise OptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer,"
            " for example localhost:9092; or path, the data folder of a broker on this machine"
        )


def _isolation(values: Values, client: Mapping[str, str]) -> str:
    given = client.get("isolation.level", "").lower()
    if given and given not in ISOLATION_LEVELS:
        raise OptionError(
            f"kafka.isolation.level={given} is not one of {', '.join(ISOLATION_LEVELS)}"
        )
    found = values.choice("isolation", ISOLATION_LEVELS, given or ISOLATION_LEVELS[0])
    if given and found != given:
        raise OptionError(
            f"isolation={found} and kafka.isolation.level={given} differ; give one of them"
        )
    return found


def _group(values: Values, client: Mapping[str, str]) -> str:
    given = client.get("group.id") or values.text("groupId")
    if given:
        return given
    query_id = values.text("queryId")
    return f"{values.text('groupIdPrefix') or GROUP_PREFIX}-{query_id}" if query_id else ""


def _decoding(values: Values) -> Decoding | None:
    kind = values.text("decode").lower()
    if not kind:
        return None
    return Decoding(
        kind=kind,
        schema=values.text("valueSchema"),
        bad_records=values.text("badRecords", "fail").lower(),
        dead_letter_topic=values.text("deadLetterTopic") or None,
        nested=values.boolean("nestValue", default=False),
        registry=values.text("schemaRegistry") or None,
        subject=values.text("schemaSubject") or None,
    )
