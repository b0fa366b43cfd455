"""From a topic's overrides and the broker's values to the LogConfig of one log."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from runnel.config.definition import ConfigError, Definition, Value
from runnel.config.registry import BROKER, TOPIC, suggestion
from runnel.config.support import LOG_FIELDS, SYNONYMS
from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError

MAX_OVERRIDES = 100  # more than twice the names there are


class HasLog(Protocol):
    """The part of Settings that is read here."""

    @property
    def log(self) -> LogConfig: ...


def log_config(given: Mapping[str, str]) -> LogConfig:
    """The broker's values as the defaults of every topic. Raises ConfigError."""
    fields: dict[str, Any] = {}
    for topic_name, field in LOG_FIELDS.items():
        for broker_name, factor in SYNONYMS.get(topic_name, ()):
            if broker_name in given:
                value = BROKER[broker_name].parse(given[broker_name])
                fields[field] = _scaled(value, factor)
                break
    if "producer.id.expiration.ms" in given:
        expiration = BROKER["producer.id.expiration.ms"].parse(given["producer.id.expiration.ms"])
        fields["producer_id_expiration_ms"] = expiration
    if fields.get("retention_ms", 1) == 0 or fields.get("retention_ms", 1) < -1:
        raise ConfigError("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    return _settled(replace(LogConfig(), **_converted(fields)))


def topic_config(settings: HasLog, overrides: Mapping[str, str]) -> LogConfig:
    """What one topic's logs use. Overrides were validated when they were stored.

    A stored name that this version does not know is skipped: a newer one wrote it.
    """
    if not overrides:
        return settings.log
    fields = {
        field: TOPIC[name].parse(overrides[name])
        for name, field in LOG_FIELDS.items()
        if name in overrides
    }
    return _settled(replace(settings.log, **_converted(fields)))


def validate_topic_configs(overrides: Mapping[str, str | None]) -> None:
    """Raises RunnelError(INVALID_CONFIG), with Kafka's wording, for the first thing wrong."""
    if len(overrides) > MAX_OVERRIDES:
        raise _invalid(f"{len(overrides)} topic configs are more than {MAX_OVERRIDES}")
    nulls = sorted(name for name, value in overrides.items() if value is None)
    if nulls:
        raise _invalid(f"Null value not supported for topic configs: {','.join(nulls)[:500]}")
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        definition = TOPIC.get(name)
        if definition is None:
            raise _invalid(f"Unknown topic config name: {name[:250]}{suggestion(name, TOPIC)}")
        assert text is not None
        values[name] = _parsed(definition, text)
    _ensure_consistent(values)


def _parsed(definition: Definition, text: str) -> Value:
    try:
        value = definition.parse(text)
    except ConfigError as error:
        raise _invalid(str(error)) from None
    if definition.status == "refused" and value != definition.parse_default():
        raise _invalid(f"{definition.name} is not supported")
    return value


def _ensure_consistent(values: Mapping[str, Value]) -> None:
    lags = [
        values.get(name, TOPIC[name].parse_default())
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    ]
    low, high = lags
    assert isinstance(low, int) and isinstance(high, int)
    if low > high:
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > "
            f"max.compaction.lag.ms ({high})"
        )
    for name in ("follower", "leader"):
        throttled = values.get(f"{name}.replication.throttled.replicas", ())
        assert isinstance(throttled, tuple)
        _ensure_replica_pairs(f"{name}.replication.throttled.replicas", throttled)


def _ensure_replica_pairs(name: str, throttled: Iterable[str]) -> None:
    items = tuple(throttled)
    if items == ("*",):
        return
    for item in items:
        partition, colon, broker = item.partition(":")
        if not (colon and partition.isdigit() and broker.isdigit()):
            raise _invalid(
                f"Invalid value [{', '.join(items)}] for configuration {name}: "
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            )


def _scaled(value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    assert isinstance(value, int)
    return -1 if value < 0 else value * factor


def _converted(fields: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(fields)
    if "cleanup_policy" in changed:
        changed["cleanup_policy"] = frozenset(changed["cleanup_policy"])
    return changed


def _settled(config: LogConfig) -> LogConfig:
    # Kafka's way to ask for an fsync before each acknowledgement, whatever else is set.
    return replace(config, durability="ack") if config.flush_messages == 1 else config


def _invalid(why: str) -> RunnelError:
    return RunnelError(ErrorCode.INVALID_CONFIG, why)
