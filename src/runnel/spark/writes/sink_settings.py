"""`kafka.*` options of a write: those of Kafka's Java producer that are used, refused, or idle.

What would be unsafe to ignore, above all encryption, is refused.
"""

from collections.abc import Mapping
from typing import Final

from runnel.arrow.errors import OptionError
from runnel.client.cluster import addresses_of
from runnel.native.compression import Compression
from runnel.spark.kafka_settings import Names, settings_of

BOOTSTRAP: Final = "bootstrap.servers"
USED: Final = {
    BOOTSTRAP: "the brokers to begin with",
    "acks": "`all` (the default), or `1`: the leader alone",
    "batch.size": "bytes of records in a batch, before compression (500000)",
    "client.id": "what the broker's log and quotas call this writer",
    "compression.type": "`none`, `gzip`, `snappy`, `lz4` or `zstd`",
    "compression.gzip.level": "1 to 9, or -1",
    "compression.lz4.level": "1 to 17",
    "compression.zstd.level": "-131072 to 22",
    "buffer.memory": "bytes that a task gathers before it sends them all (33554432)",
    "delivery.timeout.ms": "how long a task tries to get a batch written (120000)",
    "security.protocol": "only `PLAINTEXT` so far",
}
REFUSED: Final = {
    "key.serializer": (
        "Kafka option 'key.serializer' is not supported as keys are serialized with"
        " ByteArraySerializer."
    ),
    "value.serializer": (
        "Kafka option 'value.serializer' is not supported as values are serialized with"
        " ByteArraySerializer."
    ),
    "transactional.id": (
        "kafka.transactional.id is not for you to set: each task needs its own. Write with"
        " exactlyOnce=true and a queryId instead"
    ),
    "transaction.timeout.ms": "kafka.transaction.timeout.ms: set transactionTimeout instead",
    "partitioner.class": (
        "kafka.partitioner.class names a Java class; put the partition into a column named"
        " partition instead"
    ),
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}
# Of the Java producer: about its own buffers, threads and connections.
WITHOUT_EFFECT: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "config.providers",
        "connections.max.idle.ms",
        "enable.idempotence",
        "enable.metrics.push",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
_LEVELS: Final = {"gzip": (-1, 9), "lz4": (1, 17), "zstd": (-131072, 22)}
_ACKS: Final = {"all": -1, "-1": -1, "1": 1}


def producer_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The `kafka.*` options without their prefix. Raises OptionError."""
    found = settings_of(options, Names(USED, REFUSED, WITHOUT_EFFECT, "write to"))
    servers = found.get(BOOTSTRAP, "")
    if not servers:
        raise OptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer,"
            " for example localhost:9092"
        )
    try:
        addresses_of(servers)
    except ValueError as error:
        raise OptionError(
            f"kafka.{BOOTSTRAP}={servers}: {error}; write for example localhost:9092"
        ) from None
    return found


def acks_of(client: Mapping[str, str]) -> int:
    text = client.get("acks", "all").lower()
    if text not in _ACKS:
        raise OptionError(
            f"kafka.acks={text}: a row may be lost unseen; write with all (the default) or 1"
        )
    return _ACKS[text]


def compression_of(client: Mapping[str, str]) -> tuple[Compression, int | None]:
    """The codec, and its level if one was given. Raises OptionError."""
    name = client.get("compression.type", "none").lower()
    names = [codec.name.lower() for codec in Compression]
    if name not in names:
        raise OptionError(f"kafka.compression.type={name} is not one of {', '.join(names)}")
    level: int | None = None
    if name in _LEVELS and f"compression.{name}.level" in client:
        least, most = _LEVELS[name]
        level = number_of(client, f"compression.{name}.level", 0, least, most)
    return Compression[name.upper()], level


def number_of(
    client: Mapping[str, str], name: str, default: int, least: int = 1, most: int = 0x7FFFFFFF
) -> int:
    text = client.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise OptionError(f"kafka.{name}={text} is not a number from {least} to {most}")
    return value
