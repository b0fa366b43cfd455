"""`kafka.*` options: which are used, which are refused and why, which change nothing here.

The names are those of Kafka's Java consumer, so that a program written for Spark's Kafka source
runs as it is. What would be unsafe to ignore, above all encryption, is refused.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from runnel.arrow.errors import OptionError
from runnel.config.registry import suggestion

PREFIX: Final = "kafka."
USED: Final = {
    "bootstrap.servers": "the brokers to begin with",
    "client.id": "what the broker's log and quotas call this reader",
    "group.id": "the group of a stream",
    "isolation.level": "`read_committed` or `read_uncommitted`",
    "default.api.timeout.ms": "how long the driver tries when no broker answers (60000)",
    "security.protocol": "only `PLAINTEXT` so far",
    "max.partition.fetch.bytes": "the most that one fetch of a task brings",
    "fetch.max.bytes": "the same; the smaller one holds",
    "fetch.max.wait.ms": "how long a broker may wait for records before it answers",
    "request.timeout.ms": "how long a task waits for an answer before it connects anew",
    "check.crcs": "`false` leaves out the check of checksums",
}
_STARTING: Final = (
    "Instead set the source option 'startingoffsets' to 'earliest' or 'latest' to specify where to"
    " start. Structured Streaming manages which offsets are consumed internally, rather than"
    " relying on the kafkaConsumer to do it."
)
REFUSED: Final = {
    "auto.offset.reset": f"Kafka option 'auto.offset.reset' is not supported. {_STARTING}",
    "key.deserializer": (
        "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays"
        " with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the keys."
    ),
    "value.deserializer": (
        "Kafka option 'value.deserializer' is not supported as values are deserialized as byte"
        " arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize"
        " the values, or the option 'decode'."
    ),
    "enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}
# Of the Java consumer and admin client: about their own buffers, threads and membership.
WITHOUT_EFFECT: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "bootstrap.controllers",
        "client.dns.lookup",
        "client.rack",
        "config.providers",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.min.bytes",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "throw.on.fetch.stable.offset.unsupported",
    }
)
_SECRET_KEYS: Final = ("sasl.", "ssl.")


class Names(NamedTuple):
    """What is known of `kafka.*` in one direction."""

    used: Mapping[str, str]
    refused: Mapping[str, str]  # and why
    without_effect: frozenset[str]
    how: str  # "read from", "write to"


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Of a read. Raises OptionError for what is refused."""
    return settings_of(options, Names(USED, REFUSED, WITHOUT_EFFECT, "read from"))


def settings_of(options: Mapping[str, str], names: Names) -> dict[str, str]:
    """The `kafka.*` options without their prefix. Raises OptionError for what is refused."""
    found = {
        name.lower().removeprefix(PREFIX): str(value).strip()
        for name, value in options.items()
        if name.lower().startswith(PREFIX)
    }
    for key in found:
        _check(key, found, names)
    return found


def _check(key: str, found: Mapping[str, str], names: Names) -> None:
    if key in names.refused:
        raise OptionError(names.refused[key])
    if key.startswith(_SECRET_KEYS):  # never with its value
        raise OptionError(
            f"kafka.{key}: encryption and authentication are not spoken yet; {names.how} a listener"
            " with security.protocol PLAINTEXT"
        )
    if key == "security.protocol" and found[key].upper() != "PLAINTEXT":
        raise OptionError(
            f"kafka.security.protocol={found[key]}: only PLAINTEXT is spoken yet; {names.how} a"
            " PLAINTEXT listener"
        )
    if key in names.used or key in names.without_effect:
        return
    hint = suggestion(key, [*names.used, *names.without_effect])
    raise OptionError(f"unknown option kafka.{key}{hint.replace('mean ', 'mean kafka.')}")
