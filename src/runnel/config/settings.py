"""The configuration of one broker process: typed, complete, frozen at start.

A name is looked up by code only through an attribute here; the text that was given stays in
`given`, for DescribeConfigs. Dynamic configuration lives in the metadata image, not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from runnel.config.cleaning import CleanerSettings
from runnel.config.coordination import ASSIGNORS, GroupSettings, TransactionSettings
from runnel.config.definition import ConfigError, Value
from runnel.config.listeners import (
    HTTP_LISTENER,
    HttpListener,
    Listener,
    parse_http,
    parse_listeners,
    parse_protocol_map,
)
from runnel.config.overrides import log_config
from runnel.config.registry import BROKER
from runnel.config.sources import gather
from runnel.config.topic import LogConfig

T = TypeVar("T", bool, int, float, str)


class OwnLog(NamedTuple):
    """How the broker tells what happens to it."""

    level: str = "info"
    format: str = "text"
    stream: str = "stderr"
    file: str | None = None
    file_max_bytes: int = 104_857_600
    file_retention_days: int = 7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    node_id: int
    rack: str | None
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    http: HttpListener | None
    log_dirs: tuple[str, ...]
    log: LogConfig  # what a topic without configuration of its own gets
    storage: str  # where new topics live: "disk" or "memory"
    num_partitions: int
    default_replication_factor: int
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    log_retention_check_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    connections_max_idle_ms: int
    max_connections: int
    max_connection_creation_rate: int  # per second and listener
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    queued_max_request_bytes: int  # -1: bounded by the memory budget alone
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    alter_log_dirs_bytes_per_second: int
    cordoned_log_dirs: frozenset[str]
    fetch_max_bytes: int
    busy_poll_us: int
    busy_poll_awake: bool
    quota_window_num: int
    quota_window_size_seconds: int
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    flush_interval_ms: int
    decompressed_max_bytes: int
    memory_budget_bytes: int
    max_in_flight_requests: int
    frame_timeout_ms: int
    send_timeout_ms: int
    shutdown_timeout_ms: int
    max_open_files: int
    metadata_lease_ms: int
    own_log: OwnLog
    groups: GroupSettings
    transactions: TransactionSettings
    cleaner: CleanerSettings
    given: Mapping[str, str]


class _Values:
    """Typed reading of the given text over the defaults; alive only while Settings is built."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given

    def get(self, name: str) -> Value:
        definition = BROKER[name]
        return (
            definition.parse(self.given[name]) if name in self.given else definition.parse_default()
        )

    def typed(self, kind: type[T], name: str) -> T:
        value = self.get(name)
        assert isinstance(value, kind), (name, value)
        return value

    def number(self, name: str) -> int:
        return self.typed(int, name)

    def names(self, name: str) -> tuple[str, ...]:
        value = self.get(name)
        assert isinstance(value, tuple | None), (name, value)
        return value or ()


def load(
    flags: Mapping[str, str], environ: Mapping[str, str], file: Path | None
) -> tuple[Settings, list[str]]:
    """Settings and what to warn of. Flags win over the environment, that over the file.

    Raises ConfigError for an unknown name, a value out of bounds or a refused setting.
    """
    given, warnings = gather(flags, environ, file)
    for name in sorted(given):
        definition = BROKER.get(name)
        if definition is None:
            warnings.append(f"{name} has no effect: settings per listener are not supported yet")
            continue
        definition.parse(given[name])
        if definition.status == "ignored":
            warnings.append(f"{name} has no effect in this version")
        elif definition.status == "refused" and given[name].strip() not in ("", definition.default):
            shown = "" if definition.is_sensitive else f" to {given[name][:200]!r}"
            raise ConfigError(f"{name} is not supported, it cannot be set{shown}")
    values = _Values(given)
    if values.names("process.roles") == ("controller",):
        raise ConfigError(
            "process.roles=controller: this is the configuration of a controller alone, and Runnel"
            " needs none; use a broker's"
        )
    return _build(values, warnings), warnings


def _build(values: _Values, warnings: list[str]) -> Settings:
    listeners, advertised = _listeners(values, warnings)
    number = values.number
    rack = values.get("broker.rack")
    assert isinstance(rack, str | None), rack
    return Settings(
        node_id=_node_id(values),
        rack=rack,
        listeners=listeners,
        advertised_listeners=advertised,
        http=parse_http(
            values.given.get(HTTP_LISTENER), BROKER[HTTP_LISTENER].default or "", listeners
        ),
        log_dirs=_log_dirs(values),
        log=log_config(values.given),
        storage=values.typed(str, "runnel.storage"),
        num_partitions=number("num.partitions"),
        default_replication_factor=_replication_factor(values),
        auto_create_topics_enable=values.typed(bool, "auto.create.topics.enable"),
        delete_topic_enable=values.typed(bool, "delete.topic.enable"),
        log_retention_check_interval_ms=number("log.retention.check.interval.ms"),
        log_flush_offset_checkpoint_interval_ms=number("log.flush.offset.checkpoint.interval.ms"),
        log_flush_start_offset_checkpoint_interval_ms=number(
            "log.flush.start.offset.checkpoint.interval.ms"
        ),
        replica_high_watermark_checkpoint_interval_ms=number(
            "replica.high.watermark.checkpoint.interval.ms"
        ),
        socket_send_buffer_bytes=number("socket.send.buffer.bytes"),
        socket_receive_buffer_bytes=number("socket.receive.buffer.bytes"),
        socket_request_max_bytes=number("socket.request.max.bytes"),
        socket_listen_backlog_size=number("socket.listen.backlog.size"),
        connections_max_idle_ms=number("connections.max.idle.ms"),
        max_connections=number("max.connections"),
        max_connection_creation_rate=number("max.connection.creation.rate"),
        max_connections_per_ip=number("max.connections.per.ip"),
        max_connections_per_ip_overrides=per_ip_limits(
            values.typed(str, "max.connections.per.ip.overrides")
        ),
        queued_max_request_bytes=number("queued.max.request.bytes"),
        max_incremental_fetch_session_cache_slots=number(
            "max.incremental.fetch.session.cache.slots"
        ),
        max_request_partition_size_limit=number("max.request.partition.size.limit"),
        cordoned_log_dirs=cordoned_of(_log_dirs(values), values.names("cordoned.log.dirs")),
        alter_log_dirs_bytes_per_second=number("replica.alter.log.dirs.io.max.bytes.per.second"),
        fetch_max_bytes=number("fetch.max.bytes"),
        busy_poll_us=number("runnel.busy.poll.us"),
        busy_poll_awake=values.typed(bool, "runnel.busy.poll.awake"),
        quota_window_num=number("quota.window.num"),
        quota_window_size_seconds=number("quota.window.size.seconds"),
        controller_quota_window_num=number("controller.quota.window.num"),
        controller_quota_window_size_seconds=number("controller.quota.window.size.seconds"),
        flush_interval_ms=number("runnel.flush.interval.ms"),
        decompressed_max_bytes=number("runnel.decompressed.max.bytes"),
        memory_budget_bytes=number("runnel.memory.budget.bytes"),
        max_in_flight_requests=number("runnel.max.in.flight.requests"),
        frame_timeout_ms=number("runnel.frame.timeout.ms"),
        send_timeout_ms=number("runnel.send.timeout.ms"),
        shutdown_timeout_ms=number("runnel.shutdown.timeout.ms"),
        max_open_files=number("runnel.max.open.files"),
        metadata_lease_ms=number("runnel.metadata.lease.ms"),
        own_log=_own_log(values),
        groups=_groups(values),
        transactions=_transactions(values),
        cleaner=cleaner_settings(values.given),
        given=MappingProxyType(dict(values.given)),
    )


def _groups(values: _Values) -> GroupSettings:
    number = values.number
    return GroupSettings(
        offsets_topic_num_partitions=number("offsets.topic.num.partitions"),
        offsets_topic_replication_factor=number("offsets.topic.replication.factor"),
        offsets_topic_segment_bytes=number("offsets.topic.segment.bytes"),
        offset_metadata_max_bytes=number("offset.metadata.max.bytes"),
        offsets_commit_timeout_ms=number("offsets.commit.timeout.ms"),
        offsets_retention_ms=number("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=number("offsets.retention.check.interval.ms"),
        group_min_session_timeout_ms=number("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=number("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=number("group.initial.rebalance.delay.ms"),
        group_max_size=number("group.max.size"),
        group_consumer_session_timeout_ms=number("group.consumer.session.timeout.ms"),
        group_consumer_heartbeat_interval_ms=number("group.consumer.heartbeat.interval.ms"),
        group_consumer_max_size=number("group.consumer.max.size"),
        group_consumer_assignors=_assignors(values.names("group.consumer.assignors")),
        group_consumer_migration_policy=values.typed(
            str, "group.consumer.migration.policy"
        ).lower(),
        group_consumer_assignment_interval_ms=number("group.consumer.assignment.interval.ms"),
    )


def _assignors(names: tuple[str, ...]) -> tuple[str, ...]:
    """The first one is what members get who name none. Raises ConfigError."""
    for name in names:
        if name not in ASSIGNORS:
            raise ConfigError(
                f"group.consumer.assignors: {name[:250]} is not among {', '.join(ASSIGNORS)}"
            )
    if not names:
        raise ConfigError("group.consumer.assignors names no assignor")
    return names


def _transactions(values: _Values) -> TransactionSettings:
    number = values.number
    return TransactionSettings(
        transaction_state_log_num_partitions=number("transaction.state.log.num.partitions"),
        transaction_state_log_replication_factor=number("transaction.state.log.replication.factor"),
        transaction_state_log_min_isr=number("transaction.state.log.min.isr"),
        transaction_state_log_segment_bytes=number("transaction.state.log.segment.bytes"),
        transaction_max_timeout_ms=number("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=number("transactional.id.expiration.ms"),
        transaction_abort_timed_out_transaction_cleanup_interval_ms=number(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        transaction_remove_expired_transaction_cleanup_interval_ms=number(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        transaction_partition_verification_enable=values.typed(
            bool, "transaction.partition.verification.enable"
        ),
        add_partitions_to_txn_retry_backoff_ms=number("add.partitions.to.txn.retry.backoff.ms"),
        add_partitions_to_txn_retry_backoff_max_ms=number(
            "add.partitions.to.txn.retry.backoff.max.ms"
        ),
    )


def cleaner_settings(given: Mapping[str, str]) -> CleanerSettings:
    """Also of what was set since the start. Raises ConfigError."""
    values = _Values(given)
    number = values.number
    return CleanerSettings(
        enable=values.typed(bool, "log.cleaner.enable"),
        threads=number("log.cleaner.threads"),
        backoff_ms=number("log.cleaner.backoff.ms"),
        dedupe_buffer_bytes=number("log.cleaner.dedupe.buffer.size"),
        load_factor=values.typed(float, "log.cleaner.io.buffer.load.factor"),
        io_buffer_bytes=number("log.cleaner.io.buffer.size"),
        io_max_bytes_per_second=values.typed(float, "log.cleaner.io.max.bytes.per.second"),
    )


def _own_log(values: _Values) -> OwnLog:
    file = values.get("runnel.log.file")
    assert isinstance(file, str | None), file
    return OwnLog(
        values.typed(str, "runnel.log.level").lower(),
        values.typed(str, "runnel.log.format"),
        values.typed(str, "runnel.log.stream"),
        file,
        values.number("runnel.log.file.max.bytes"),
        values.number("runnel.log.file.retention.days"),
    )


def _node_id(values: _Values) -> int:
    node_id, broker_id = values.number("node.id"), values.number("broker.id")
    if "broker.id" not in values.given or broker_id == -1:
        return node_id
    if "node.id" in values.given and node_id != broker_id:
        raise ConfigError(f"node.id {node_id} and broker.id {broker_id} must be the same")
    if broker_id < 0:
        raise ConfigError(f"Invalid value {broker_id} for configuration broker.id: below 0")
    return broker_id


def _log_dirs(values: _Values) -> tuple[str, ...]:
    found = values.names("log.dirs") or values.names("log.dir")
    if not all(found) or not found:
        raise ConfigError("log.dirs names no folder")
    return found


def cordoned_of(log_dirs: tuple[str, ...], cordoned: tuple[str, ...]) -> frozenset[str]:
    """`cordoned.log.dirs` (KIP-1066): folders that get no new logs. Raises ConfigError."""
    for folder in cordoned:
        if folder not in log_dirs:
            raise ConfigError(f"cordoned.log.dirs: {folder[:250]} is not among log.dirs")
    if not set(log_dirs) - set(cordoned):
        raise ConfigError("cordoned.log.dirs: at least one of log.dirs must take new logs")
    return frozenset(cordoned)


def _replication_factor(values: _Values) -> int:
    factor = values.number("default.replication.factor")
    if not 1 <= factor <= 32767:
        raise ConfigError(
            f"Invalid value {factor} for configuration default.replication.factor: "
            "it must be between 1 and 32767"
        )
    return factor


def _listeners(
    values: _Values, warnings: list[str]
) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    protocols = parse_protocol_map(values.typed(str, "listener.security.protocol.map"))
    # A file made for a KRaft node in the combined mode also lists its controller's listener.
    controller = {name.upper() for name in values.names("controller.listener.names")}
    texts = [
        t for t in values.names("listeners") if t.partition("://")[0].upper() not in controller
    ]
    if len(texts) < len(values.names("listeners")):
        warnings.append(
            "listeners: the controller's are left out, Runnel has no separate controller"
        )
    listeners = parse_listeners("listeners", texts, protocols)
    if not listeners:
        raise ConfigError("listeners names no address to listen on")
    advertised = parse_listeners(
        "advertised.listeners", values.names("advertised.listeners"), protocols
    )
    names = {listener.name for listener in listeners}
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(f"advertised.listeners: {listener.name} is not among the listeners")
        if listener.host in ("0.0.0.0", "::"):
            raise ConfigError(
                f"advertised.listeners: no client can reach {listener.host}; name the host that"
                f" clients know, as in {listener.name}://broker.example:{listener.port}"
            )
    told = {listener.name: listener for listener in advertised}
    every = tuple(told.get(listener.name, _reachable(listener)) for listener in listeners)
    return tuple(listeners), every


def _reachable(listener: Listener) -> Listener:
    return listener._replace(host="") if listener.host in ("0.0.0.0", "::") else listener


def per_ip_limits(text: str) -> Mapping[str, int]:
    """`max.connections.per.ip.overrides`, which is `host:count,host:count`. Raises ConfigError."""
    limits: dict[str, int] = {}
    for pair in filter(None, text.split(",")):
        host, colon, count = pair.strip().rpartition(":")
        if not (colon and host and count.isascii() and count.isdigit() and len(count) < 10):
            raise ConfigError(f"max.connections.per.ip.overrides: {pair!r} is not host:count")
        limits[host] = int(count)
    return MappingProxyType(limits)
