"""A broker's settings in layers, and the Settings that they come to while it runs.

What was set over the wire for this broker wins over what was set for all brokers, that over what
the process was started with (`given`). A change is judged by the layers it would leave.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from runnel.config.cleaning import NAMES as CLEANER_NAMES
from runnel.config.definition import ConfigError
from runnel.config.overrides import log_config
from runnel.config.registry import BROKER, suggestion
from runnel.config.settings import Settings, cleaner_settings, cordoned_of, per_ip_limits
from runnel.errors import ErrorCode, RunnelError

NO_SETTINGS: Final[Mapping[str, str]] = {}
# Kafka has no thread counts of ours to resize, but its bounds are part of the answer.
THREADS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
# Dynamic in Kafka, fixed here: sockets and their protocols are made at the start.
CLEANER_THREADS: Final = "log.cleaner.threads"
FIXED: Final = frozenset({"listeners", "listener.security.protocol.map"})
_CORDONED: Final = "cordoned.log.dirs"
_PER_IP: Final = "max.connections.per.ip.overrides"
_NUMBERS: Final[Mapping[str, str]] = {
    "replica.alter.log.dirs.io.max.bytes.per.second": "alter_log_dirs_bytes_per_second",
    "max.connection.creation.rate": "max_connection_creation_rate",
    "max.connections": "max_connections",
    "max.connections.per.ip": "max_connections_per_ip",
}
_ASSIGNMENT_INTERVAL: Final = "group.consumer.assignment.interval.ms"
_VERIFICATION: Final = "transaction.partition.verification.enable"
_LISTENER_PREFIX: Final = "listener.name."


class Layers(NamedTuple):
    """The texts that were set, the layer that wins first."""

    own: Mapping[str, str]
    default: Mapping[str, str]
    given: Mapping[str, str]

    @property
    def merged(self) -> dict[str, str]:
        return {**self.given, **_alterable(self.default), **_alterable(self.own)}

    def text(self, name: str) -> str | None:
        """What counts for this name alone, a default included."""
        return self.merged.get(name, BROKER[name].default)


def _alterable(layer: Mapping[str, str]) -> Mapping[str, str]:
    """Without what only a newer version knows."""
    return {n: text for n, text in layer.items() if n in BROKER and BROKER[n].is_dynamic}


def effective(started: Settings, layers: Layers) -> Settings:
    """The settings as they are now. Raises ConfigError if the layers contradict each other.

    Only what can change is replaced: the process may have lowered the rest to what it can get.
    """
    altered = {**_alterable(layers.default), **_alterable(layers.own)}
    if not altered:
        return started
    merged = layers.merged
    changes: dict[str, object] = {"log": log_config(merged)}
    for name, field in _NUMBERS.items():
        if name in altered:
            changes[field] = BROKER[name].parse(merged[name])
    if _PER_IP in altered:
        changes["max_connections_per_ip_overrides"] = per_ip_limits(merged[_PER_IP])
    if _CORDONED in altered:
        folders = BROKER[_CORDONED].parse(merged[_CORDONED])
        assert isinstance(folders, tuple), folders
        changes["cordoned_log_dirs"] = cordoned_of(started.log_dirs, folders)
    if not altered.keys().isdisjoint(CLEANER_NAMES):
        changes["cleaner"] = cleaner_settings(merged)
    if _ASSIGNMENT_INTERVAL in altered:
        interval_ms = BROKER[_ASSIGNMENT_INTERVAL].parse(merged[_ASSIGNMENT_INTERVAL])
        assert isinstance(interval_ms, int), interval_ms
        changes["groups"] = replace(
            started.groups, group_consumer_assignment_interval_ms=interval_ms
        )
    if _VERIFICATION in altered:
        changes["transactions"] = replace(
            started.transactions,
            transaction_partition_verification_enable=bool(
                BROKER[_VERIFICATION].parse(merged[_VERIFICATION])
            ),
        )
    return replace(started, **changes)  # type: ignore[arg-type]  # fields by name, parsed to their types


def ensure_broker(started: Settings, before: Layers, after: Layers, *, is_default: bool) -> None:
    """Raises RunnelError(INVALID_REQUEST), as Kafka does for a broker's settings (KAFKA-13609)."""
    old, new = (before.default, after.default) if is_default else (before.own, after.own)
    wanted = {name: text for name, text in new.items() if old.get(name) != text}
    _ensure_names(before, wanted, is_default=is_default)
    try:
        for name, text in wanted.items():
            BROKER[name].parse(text)
        effective(started, after)
    except ConfigError as error:
        raise _refused(str(error)) from None
    for name in THREADS:
        _ensure_threads(name, int(before.text(name) or 1), int(after.text(name) or 1))
    _ensure_cleaner_threads(
        int(before.text(CLEANER_THREADS) or 1), int(after.text(CLEANER_THREADS) or 1)
    )


def _ensure_names(before: Layers, wanted: Mapping[str, str], *, is_default: bool) -> None:
    for name in wanted:
        if name.startswith(_LISTENER_PREFIX):
            raise _refused(f"{name[:250]}: settings per listener are not supported yet")
        if name not in BROKER:
            raise _refused(f"Unknown broker config name: {name[:250]}{suggestion(name, BROKER)}")
    _ensure_none(
        "Cannot update these configs dynamically", [n for n in wanted if not BROKER[n].is_dynamic]
    )
    _ensure_none(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        [n for n in wanted if BROKER[n].update == "per-broker" and n.startswith("ssl.")],
    )
    if is_default:
        _ensure_none(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [n for n in wanted if BROKER[n].update == "per-broker"],
        )
    for name, text in wanted.items():
        if name in FIXED and text.strip() != (before.text(name) or ""):
            raise _refused(f"{name} can only be changed with a restart")
        if BROKER[name].status == "refused" and text.strip() not in ("", BROKER[name].default):
            raise _refused(f"{name} is not supported")


def _ensure_none(why: str, names: Sequence[str]) -> None:
    if names:
        raise _refused(f"{why}: [{', '.join(sorted(names))}]")


def _ensure_threads(name: str, old: int, new: int) -> None:
    problem = f"Dynamic thread count update validation failed for {name}={new}"
    if new < old / 2:
        raise _refused(f"{problem}, value should be at least half the current value {old}")
    if new > old * 2:
        raise _refused(
            f"{problem}, value should not be greater than double the current value {old}"
        )


def _ensure_cleaner_threads(old: int, new: int) -> None:
    """Kafka has words of its own for these. Started with none, a broker may get its first."""
    if new == old:
        return
    if new < 1:
        raise _refused(f"Log cleaner threads should be at least 1, but found {new}")
    if new < old / 2:
        raise _refused(
            f"Log cleaner threads cannot be reduced to less than half the current value {old}"
        )
    if new > max(old, 1) * 2:
        raise _refused(
            f"Log cleaner threads cannot be increased to more than double the current value {old}"
        )


def _refused(why: str) -> RunnelError:
    return RunnelError(ErrorCode.INVALID_REQUEST, why)
