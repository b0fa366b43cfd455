"""The options of a write to topics, and whether the rows have the columns that it needs.

Options, columns and the words of errors are those of Spark's Kafka sink; `exactlyOnce` and what
goes with it are our own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runnel.arrow.errors import OptionError
from runnel.config.registry import suggestion
from runnel.native.compression import Compression
from runnel.spark.kafka_settings import PREFIX
from runnel.spark.writes.sink_settings import acks_of, compression_of, number_of, producer_settings

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

BATCH_BYTES: Final = 500_000  # below the default of max.message.bytes, with room to grow
BUFFER_BYTES: Final = 32 << 20
DELIVERY_TIMEOUT_MS: Final = 120_000
TRANSACTION_TIMEOUT_MS: Final = 15 * 60_000  # the most that brokers allow unless told
TRANSACTION_TIMEOUT_LEAST_MS: Final = 10_000
DECISIONS_TOPIC: Final = "__runnel_spark_decisions"
QUERY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
OPTIONS: Final = {
    "topic": "where all rows go; without it the column `topic` says where each goes",
    "includeHeaders": "`false` leaves the column `headers` out",
    "exactlyOnce": "`true`: every row once, for those who read what is committed",
    "queryId": "the name of the query, the same at every start; `exactlyOnce` needs it",
    "batchId": "of a batch write: a number that rises; what was written under it is not again",
    "transactionTimeout": "longer than any batch takes (15m, the most that brokers allow)",
    "decisionsTopic": f"where decisions are kept ({DECISIONS_TOPIC})",
}
# What Spark itself puts among the options of a write.
OF_SPARK: Final = frozenset({"checkpointlocation", "path", "paths", "mergeschema", "queryname"})
COLUMNS: Final = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
_TIME: Final = re.compile(r"(\d+)\s*(ms|s|m|min|h)?")
_TIME_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}


@dataclass(frozen=True)
class SinkOptions:
    """Checked, and small enough to go to every task."""

    client: Mapping[str, str]  # `kafka.*` without the prefix
    topic: str | None
    columns: tuple[str, ...]  # of the rows, in their order
    headers: bool
    acks: int
    codec: Compression
    level: int | None
    batch_bytes: int
    buffer_bytes: int
    delivery_timeout_s: float
    exactly_once: bool
    query_id: str
    batch_id: int | None
    transaction_timeout_ms: int
    decisions_topic: str

    @property
    def bootstrap(self) -> str:
        return self.client["bootstrap.servers"]


def sink_options(
    options: Mapping[str, str], schema: "StructType", *, streaming: bool
) -> SinkOptions:
    """Raises OptionError."""
    values = {name.lower(): str(value).strip() for name, value in options.items()}
    _refuse_unknown(values)
    client = producer_settings(options)
    topic = values.get("topic") or None
    check_columns(schema, topic)
    exactly_once = _boolean(values, "exactlyOnce", default=False)
    acks = acks_of(client)
    query_id = values.get("queryid", "")
    if exactly_once:
        _check_query_id(query_id)
        if acks != -1:
            raise OptionError("exactlyOnce=true needs kafka.acks=all")
    batch_id = values.get("batchid")
    if batch_id is not None and (streaming or not exactly_once or not batch_id.isdecimal()):
        raise OptionError(
            f"batchId={batch_id}: a whole number, for batch writes with exactlyOnce=true; a stream"
            " has its own batches"
        )
    codec, level = compression_of(client)
    return SinkOptions(
        client=client,
        topic=topic,
        columns=tuple(schema.fieldNames()),
        headers=_boolean(values, "includeHeaders", default=True),
        acks=acks,
        codec=codec,
        level=level,
        batch_bytes=number_of(client, "batch.size", BATCH_BYTES),
        buffer_bytes=number_of(client, "buffer.memory", BUFFER_BYTES),
        delivery_timeout_s=number_of(client, "delivery.timeout.ms", DELIVERY_TIMEOUT_MS) / 1000,
        exactly_once=exactly_once,
        query_id=query_id,
        batch_id=None if batch_id is None else int(batch_id),
        transaction_timeout_ms=_time_ms(values, "transactionTimeout", TRANSACTION_TIMEOUT_MS),
        decisions_topic=values.get("decisionstopic") or DECISIONS_TOPIC,
    )


def check_columns(schema: "StructType", topic: str | None) -> None:
    """Raises OptionError, in the words of Spark's Kafka sink."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, wanted in COLUMNS.items():
        if name not in types or (name == "topic" and topic is not None):
            continue
        if types[name] not in wanted:
            raise OptionError(
                f"{name} attribute unsupported type {types[name]}. {name} must be a(n)"
                f" {' or '.join(wanted)}"
            )
    if topic is None and "topic" not in types:
        raise OptionError(
            "topic option required when no 'topic' attribute is present. Use the topic option for"
            " setting a topic."
        )
    if "value" not in types:
        raise OptionError("Required attribute 'value' not found")


def _refuse_unknown(values: Mapping[str, str]) -> None:
    names = {name.lower(): name for name in OPTIONS}
    for name in values:
        if name in names or name in OF_SPARK or name.startswith(PREFIX):
            continue
        hint = suggestion(name, list(names))
        for lower, proper in names.items():
            hint = hint.replace(lower, proper)
        raise OptionError(f"unknown option {name}{hint or '; a write takes ' + ', '.join(OPTIONS)}")


def _check_query_id(query_id: str) -> None:
    if not query_id:
        raise OptionError(
            "exactlyOnce=true needs the option queryId, a name that stays the same at every start"
            ' of the query, such as .option("queryId", "orders-to-alerts"): by it a restart finds'
            " what was decided, and ends what was left open"
        )
    if not QUERY_ID.fullmatch(query_id):
        raise OptionError(
            f"queryId={query_id}: up to 100 letters, digits, dots, underscores and hyphens"
        )


def _boolean(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = values.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name}={text} is not true or false")
    return text == "true"


def _time_ms(values: Mapping[str, str], name: str, default_ms: int) -> int:
    text = values.get(name.lower())
    if text is None:
        return default_ms
    match = _TIME.fullmatch(text.lower())
    time_ms = 0 if match is None else int(match[1]) * _TIME_MS[match[2] or "ms"]
    if not TRANSACTION_TIMEOUT_LEAST_MS <= time_ms <= 0x7FFFFFFF:
        raise OptionError(f"{name}={text} is not a time from 10s on; write for example {name}=15m")
    return time_ms
