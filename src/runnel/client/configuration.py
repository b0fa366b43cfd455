"""Settings of producers and consumers: checked when they are made, never changed afterwards.

Fields have Kafka's names with underscores. Whatever else librdkafka can do is set by its own name
in `extra`; a name that has a field here is refused there, so that each thing is set in one place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from runnel.client.failures import ConfigurationError
from runnel.client.serializers import Serializer

if TYPE_CHECKING:
    from runnel.client.builders import ConsumerConfigBuilder, ProducerConfigBuilder

DEFAULT_SERVERS = "localhost:9092"
CLIENT_ID = "runnel-client"
MEBIBYTE = 1024 * 1024
INT32_MAX = 2**31 - 1
# librdkafka waits so long before it fetches again after its queue was full; its own default of a
# second leaves a quick reader without messages for most of its time.
QUEUE_BACKOFF_MS = 5

Setting = str | int | float | bool
Choice = TypeVar("Choice", bound=StrEnum)


class AckMode(StrEnum):
    """Who has to have a message before it counts as delivered."""

    NONE = "0"  # nobody: fastest, and lost messages are not noticed
    LEADER = "1"
    ALL = "all"  # every replica that is in sync


class CompressionType(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class OffsetResetPolicy(StrEnum):
    """Where to start when the group has committed nothing, or what it committed is gone."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "error"  # raise ConsumeError


class IsolationLevel(StrEnum):
    """Whether messages of transactions are read before they are committed."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@dataclass(frozen=True)
class _Connection:
    """What producers and consumers have in common."""

    bootstrap_servers: str | Sequence[str] = DEFAULT_SERVERS
    _: KW_ONLY
    client_id: str = CLIENT_ID
    start_timeout_ms: int = 10_000  # how long `start` waits for a first answer
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    reconnect_backoff_max_ms: int = 1_000  # a broker that was restarted is found within that
    security_protocol: str = "PLAINTEXT"  # or SSL, SASL_PLAINTEXT, SASL_SSL
    sasl_mechanism: str | None = None  # PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None  # a file of certificates that are trusted
    extra: Mapping[str, Setting] = field(default_factory=dict, repr=False)

    @property
    def servers(self) -> str:
        """Addresses, separated by commas."""
        given = self.bootstrap_servers
        return given if isinstance(given, str) else ",".join(given)

    def _check_connection(self) -> None:
        for server in self.servers.split(","):
            host, colon, port = server.strip().rpartition(":")
            if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
                raise ConfigurationError(
                    f"bootstrap_servers has {server.strip()!r}: write host:port, such as "
                    f"{DEFAULT_SERVERS}"
                )
        _at_least(self, 1, "start_timeout_ms", "request_timeout_ms", "retry_backoff_ms")
        _at_least(self, 100, "reconnect_backoff_max_ms")
        has_user = self.sasl_username is not None or self.sasl_mechanism is not None
        if has_user and not self.security_protocol.startswith("SASL_"):
            raise ConfigurationError(
                "a user needs security_protocol='SASL_SSL', or 'SASL_PLAINTEXT' without encryption"
            )

    def connection_settings(self) -> dict[str, Any]:
        optional = {
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password,
            "ssl.ca.location": self.ssl_ca_location,
        }
        return {
            "bootstrap.servers": self.servers,
            "client.id": self.client_id,
            "security.protocol": self.security_protocol,
            "retry.backoff.ms": self.retry_backoff_ms,
            "reconnect.backoff.max.ms": self.reconnect_backoff_max_ms,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True)
class ProducerConfig(_Connection):
    """How a producer sends. The defaults lose nothing and write nothing twice.

        ProducerConfig("localhost:9092", linger_ms=20, compression_type=CompressionType.ZSTD)

    A batch goes out when it is full or `linger_ms` old. What was not acknowledged
    `delivery_timeout_ms` after it was sent fails. A `send` into a full queue waits, `max_block_ms`
    at most.
    """

    _: KW_ONLY
    acks: AckMode | str | int = AckMode.ALL
    batch_size: int = 1_000_000  # bytes
    linger_ms: float = 5.0
    retries: int = INT32_MAX  # within delivery_timeout_ms
    enable_idempotence: bool | None = None  # None: on with acks=all
    compression_type: CompressionType | str = CompressionType.NONE
    delivery_timeout_ms: int = 120_000
    max_in_flight: int = 5  # requests on one connection
    partitioner: str = "murmur2_random"  # the same key, the same partition as from Java and Go
    max_request_size: int = 1_000_000  # bytes
    queue_messages: int = 100_000  # at most so many wait to be sent or acknowledged
    queue_bytes: int = 64 * MEBIBYTE  # and so many bytes
    max_block_ms: int = 60_000
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None

    def __post_init__(self) -> None:
        self._check_connection()
        acks = "all" if str(self.acks) == "-1" else str(self.acks)
        object.__setattr__(self, "acks", _choice(AckMode, acks, "acks"))
        compression = _choice(CompressionType, self.compression_type, "compression_type")
        object.__setattr__(self, "compression_type", compression)
        _at_least(self, 0, "linger_ms", "retries", "max_block_ms")
        _at_least(self, 1, "batch_size", "delivery_timeout_ms", "max_in_flight", "queue_messages")
        _at_least(self, 1, "transaction_timeout_ms")
        _at_least(self, 1000, "max_request_size")
        _at_least(self, 1024, "queue_bytes")
        if self.enable_idempotence is None:
            object.__setattr__(self, "enable_idempotence", self.acks is AckMode.ALL)
        if self.enable_idempotence and self.acks is not AckMode.ALL:
            raise ConfigurationError("enable_idempotence needs acks=AckMode.ALL")
        if self.enable_idempotence and self.max_in_flight > 5:
            raise ConfigurationError("enable_idempotence allows max_in_flight of 5 at most")
        if self.transactional_id is not None and not self.enable_idempotence:
            raise ConfigurationError("a transactional_id needs enable_idempotence")
        if self.delivery_timeout_ms < self.linger_ms:
            raise ConfigurationError("delivery_timeout_ms has to be longer than linger_ms")
        _check_extra(self.extra, self.settings(), type(self))

    def settings(self) -> dict[str, Any]:
        """What librdkafka is given, without `extra`."""
        settings = {
            **self.connection_settings(),
            "acks": str(self.acks),
            "batch.size": self.batch_size,
            "linger.ms": self.linger_ms,
            "retries": self.retries,
            "enable.idempotence": bool(self.enable_idempotence),
            "compression.type": str(self.compression_type),
            "delivery.timeout.ms": self.delivery_timeout_ms,
            "request.timeout.ms": self.request_timeout_ms,
            "max.in.flight": self.max_in_flight,
            "partitioner": self.partitioner,
            "message.max.bytes": self.max_request_size,
            "queue.buffering.max.messages": self.queue_messages,
            "queue.buffering.max.kbytes": max(self.queue_bytes // 1024, 1),
        }
        if self.transactional_id is not None:
            settings["transactional.id"] = self.transactional_id
            settings["transaction.timeout.ms"] = self.transaction_timeout_ms
            # What is not delivered by then is aborted with its transaction.
            settings["delivery.timeout.ms"] = min(
                self.delivery_timeout_ms, self.transaction_timeout_ms
            )
        return settings

    @classmethod
    def builder(cls) -> "ProducerConfigBuilder":
        """The same, call by call."""
        from runnel.client.builders import ProducerConfigBuilder

        return ProducerConfigBuilder()


@dataclass(frozen=True)
class ConsumerConfig(_Connection):
    """How a consumer reads.

        ConsumerConfig("localhost:9092", group_id="billing")

    Without a `group_id` it reads for itself: all partitions, from where `auto_offset_reset` says,
    and nothing is committed. With `enable_auto_commit` what was handled is committed every
    `auto_commit_interval_ms` and by `close`: a message counts as handled when the next one is asked
    for, so that a crash repeats messages but loses none.
    """

    _: KW_ONLY
    group_id: str | None = None
    group_instance_id: str | None = None  # a static member: a restart moves no partitions
    group_protocol: Literal["classic", "consumer"] = "classic"
    partition_assignment_strategy: str = "cooperative-sticky"  # of the classic protocol
    auto_offset_reset: OffsetResetPolicy | str = OffsetResetPolicy.EARLIEST
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000  # of the classic protocol
    isolation_level: IsolationLevel | str = IsolationLevel.READ_COMMITTED
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    queue_bytes: int = 64 * MEBIBYTE  # at most so much is fetched before it is asked for
    key_deserializer: Serializer | None = None
    value_deserializer: Serializer | None = None

    def __post_init__(self) -> None:
        self._check_connection()
        policy = "error" if self.auto_offset_reset == "none" else self.auto_offset_reset
        policy = _choice(OffsetResetPolicy, policy, "auto_offset_reset")
        object.__setattr__(self, "auto_offset_reset", policy)
        level = _choice(IsolationLevel, self.isolation_level, "isolation_level")
        object.__setattr__(self, "isolation_level", level)
        _at_least(self, 1, "auto_commit_interval_ms", "max_poll_records", "max_poll_interval_ms")
        _at_least(self, 1, "session_timeout_ms", "fetch_min_bytes")
        _at_least(self, 0, "fetch_max_wait_ms")
        _at_least(self, 1024, "queue_bytes")
        if self.max_poll_records > 1_000_000:
            raise ConfigurationError("max_poll_records is 1,000,000 at most")
        if self.group_id == "":
            raise ConfigurationError("group_id is empty: leave it out to read without a group")
        if self.group_id is None and self.auto_offset_reset is OffsetResetPolicy.NONE:
            raise ConfigurationError(
                "without a group_id nothing is committed: auto_offset_reset is earliest or latest"
            )
        if self.group_instance_id is not None and self.group_id is None:
            raise ConfigurationError("a group_instance_id needs a group_id")
        if self.group_protocol not in ("classic", "consumer"):
            raise ConfigurationError("group_protocol is 'classic' or 'consumer'")
        if self.max_poll_interval_ms < self.session_timeout_ms:
            raise ConfigurationError("max_poll_interval_ms cannot be below session_timeout_ms")
        _check_extra(self.extra, self.settings(), type(self))

    def settings(self) -> dict[str, Any]:
        """What librdkafka is given, without `extra`.

        It may store offsets only when this library says so: a message counts when it was handled,
        not when it was handed out. The ends of partitions are for `until_end`.
        """
        settings = {
            **self.connection_settings(),
            "group.id": self.group_id
            or CLIENT_ID,  # has to be named; without one nothing is joined
            "group.protocol": self.group_protocol,
            "auto.offset.reset": str(self.auto_offset_reset),
            "enable.auto.commit": self.enable_auto_commit and self.group_id is not None,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.commit.interval.ms": self.auto_commit_interval_ms,
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "isolation.level": str(self.isolation_level),
            "fetch.min.bytes": self.fetch_min_bytes,
            "fetch.wait.max.ms": self.fetch_max_wait_ms,
            "fetch.queue.backoff.ms": QUEUE_BACKOFF_MS,
            "queued.max.messages.kbytes": max(self.queue_bytes // 1024, 1),
        }
        if self.group_instance_id is not None:
            settings["group.instance.id"] = self.group_instance_id
        if self.group_protocol == "classic":
            settings["partition.assignment.strategy"] = self.partition_assignment_strategy
            settings["session.timeout.ms"] = self.session_timeout_ms
        return settings

    @classmethod
    def builder(cls) -> "ConsumerConfigBuilder":
        """The same, call by call."""
        from runnel.client.builders import ConsumerConfigBuilder

        return ConsumerConfigBuilder()


def _choice(kind: type[Choice], given: str, name: str) -> Choice:
    try:
        return kind(given)
    except ValueError:
        known = ", ".join(repr(str(member)) for member in kind)
        raise ConfigurationError(f"{name} is {given!r}: choose one of {known}") from None


def _at_least(config: object, least: float, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or value < least:
            raise ConfigurationError(
                f"{name} is {value!r}: a number of {least:g} or more is wanted"
            )


def _check_extra(extra: Mapping[str, Setting], taken: Mapping[str, object], kind: type) -> None:
    known = {one.name for one in fields(kind)}
    for name in extra:
        mine = name.replace(".", "_")
        if mine in known:
            raise ConfigurationError(f"{name} has a field: write {kind.__name__}({mine}=...)")
        if name in taken:
            raise ConfigurationError(f"{name} is set by {kind.__name__} itself: see its fields")
