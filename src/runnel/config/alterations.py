"""What becomes of a set of settings when a client alters it, and what it may not become.

Pure: AlterConfigs and IncrementalAlterConfigs say what to change, and the store applies the
function again when another was quicker. The refusals have Kafka's codes and, as near as a
Python broker can say the same, its words.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from runnel.config.definition import ConfigError, Definition
from runnel.config.overrides import validate_topic_configs
from runnel.config.registry import GROUP, TOPIC, suggestion
from runnel.errors import ErrorCode, RunnelError

MAX_CHANGES = 1000  # in one resource; there are fewer than 400 names


class Operation(IntEnum):
    """Kafka's AlterConfigOp codes."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: Operation
    value: str | None


def ensure_well_formed(changes: Sequence[Change]) -> None:
    """Raises RunnelError(INVALID_REQUEST) for what no set of settings could be changed by."""
    if len(changes) > MAX_CHANGES:
        raise _bad_request(f"{len(changes)} configs are more than {MAX_CHANGES}")
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise _bad_request("Error due to duplicate config keys")
    nulls = [c.name for c in changes if c.operation != Operation.DELETE and c.value is None]
    if nulls:
        raise _bad_request(f"Null value not supported for : {', '.join(nulls)[:500]}")


def incremental(
    current: Mapping[str, str], changes: Sequence[Change], names: Mapping[str, Definition]
) -> dict[str, str]:
    """Raises RunnelError(INVALID_CONFIG) where something is added to what is no list."""
    wanted = dict(current)
    for name, operation, value in changes:
        if operation == Operation.DELETE:
            wanted.pop(name, None)
        elif operation == Operation.SET:
            wanted[name] = value or ""
        else:
            wanted[name] = _with_items(
                wanted.get(name), operation, value or "", names.get(name), name
            )
    return wanted


def replaced(current: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """As the old AlterConfigs has it: what is not named is gone, except what cannot change."""
    fixed = {n: v for n, v in current.items() if n in TOPIC and not TOPIC[n].is_dynamic}
    return {**fixed, **wanted}


def _with_items(
    text: str | None, operation: Operation, value: str, definition: Definition | None, name: str
) -> str:
    if definition is None or definition.type != "list":
        raise RunnelError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.name} to key {name} because its type is not LIST.",
        )
    text = definition.default if text is None else text
    items = [item.strip() for item in (text or "").split(",") if item.strip()]
    given = [item.strip() for item in value.split(",")]
    if operation == Operation.APPEND:
        items += [item for item in dict.fromkeys(given) if item not in items]
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def ensure_topic(current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises RunnelError(INVALID_CONFIG). What a newer version stored is left alone."""
    changed = {name for name in {*current, *wanted} if current.get(name) != wanted.get(name)}
    fixed = sorted(name for name in changed if name in TOPIC and not TOPIC[name].is_dynamic)
    if fixed:
        raise RunnelError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot update these configs dynamically: [{', '.join(fixed)}]",
        )
    validate_topic_configs({n: v for n, v in wanted.items() if n in TOPIC or n in changed})


def ensure_group(wanted: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """`broker` has the effective bounds (`group.consumer.min.session.timeout.ms`) as text.

    Raises RunnelError(INVALID_CONFIG).
    """
    for name, text in wanted.items():
        definition = GROUP.get(name)
        if definition is None:
            raise RunnelError(
                ErrorCode.INVALID_CONFIG,
                f"Unknown group config name: {name[:250]}{suggestion(name, GROUP)}",
            )
        try:
            value = definition.parse(text)
        except ConfigError as error:
            raise RunnelError(ErrorCode.INVALID_CONFIG, str(error)) from None
        if isinstance(value, int):
            _ensure_within(name, value, broker)


def _ensure_within(name: str, value: int, broker: Mapping[str, str]) -> None:
    kind, _, rest = name.partition(".")
    for bound, word in (("min", "greater"), ("max", "less")):
        limit_name = f"group.{kind}.{bound}.{rest}"
        if limit_name not in broker:
            continue
        limit = int(broker[limit_name])
        if (value < limit) if bound == "min" else (value > limit):
            raise RunnelError(
                ErrorCode.INVALID_CONFIG, f"{name} must be {word} than or equal to {limit_name}"
            )


CLIENT_METRICS: Mapping[str, Definition] = {
    d.name: d
    for d in (
        Definition("group", "interval.ms", "int", "300000", update="cluster-wide"),
        Definition("group", "match", "list", "", update="cluster-wide"),
        Definition("group", "metrics", "list", "", update="cluster-wide"),
    )
}
_MATCHED = frozenset(
    f"client_{what}"
    for what in (
        "instance_id",
        "id",
        "software_name",
        "software_version",
        "source_address",
        "source_port",
    )
)


def ensure_client_metrics(wanted: Mapping[str, str]) -> None:
    """KIP-714 subscriptions. They are kept; no client is asked for its metrics yet."""
    for name, text in wanted.items():
        if name not in CLIENT_METRICS:
            raise _bad_request(f"Unknown client metrics configuration: {name[:250]}")
        try:
            value = CLIENT_METRICS[name].parse(text)
        except ConfigError as error:
            raise RunnelError(ErrorCode.INVALID_CONFIG, str(error)) from None
        if isinstance(value, int) and not 100 <= value <= 3_600_000:
            raise _bad_request(
                f"Invalid value {value} for {name}, interval must be between 100 and 3600000 "
                "(1 hour)"
            )
        if name == "match" and isinstance(value, tuple):
            for pattern in value:
                parameter, equals, expression = pattern.partition("=")
                if not (equals and expression.strip()) or parameter.strip() not in _MATCHED:
                    raise RunnelError(
                        ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"
                    )


def _bad_request(why: str) -> RunnelError:
    return RunnelError(ErrorCode.INVALID_REQUEST, why)
