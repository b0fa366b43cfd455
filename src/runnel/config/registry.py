"""One Definition for every name: the facts of Kafka joined with what Runnel does about them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from runnel.config.definition import Definition, Status
from runnel.config.kafka_names import KAFKA_NAMES
from runnel.config.runnel_names import RUNNEL_NAMES
from runnel.config.support import (
    BROKER_SYNONYMS,
    DEFAULTS,
    DYNAMIC_ONLY_NAMES,
    HONOURED_BROKER_NAMES,
    HONOURED_GROUP_NAMES,
    LOG_FIELDS,
    REFUSED_NAMES,
    SYNONYMS,
)

_HONOURED: Final[Mapping[str, Collection[str]]] = {
    "broker": HONOURED_BROKER_NAMES,
    "group": HONOURED_GROUP_NAMES,
    "topic": LOG_FIELDS,
}


def _status(definition: Definition) -> Status:
    if definition.type == "class" or definition.name in REFUSED_NAMES:
        return "refused"
    return "honoured" if definition.name in _HONOURED[definition.scope] else "ignored"


def _registered(definition: Definition) -> Definition:
    default = definition.default
    if definition.scope == "broker":
        default = DEFAULTS.get(definition.name, default)
    return definition._replace(status=_status(definition), default=default)


def _scope(scope: str) -> dict[str, Definition]:
    mine = [d for d in RUNNEL_NAMES if d.scope == scope]
    kafka = [_registered(d) for d in KAFKA_NAMES + DYNAMIC_ONLY_NAMES if d.scope == scope]
    return {definition.name: definition for definition in kafka + mine}


BROKER = _scope("broker")
TOPIC = _scope("topic")
GROUP = _scope("group")
_SENSITIVE: Final = tuple(name for name in BROKER if BROKER[name].is_sensitive)


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Every broker name that can give this one's value, in the order in which they win."""
    return next((names for names in BROKER_SYNONYMS if name in names), (name,))


def is_sensitive(name: str) -> bool:
    """Also of a setting of one listener (`listener.name.NAME.sasl.jaas.config`)."""
    if name in BROKER:
        return BROKER[name].is_sensitive
    return any(name.endswith(f".{known}") for known in _SENSITIVE)


def suggestion(name: str, names: Iterable[str]) -> str:
    """A hint for the message of an unknown name; empty where nothing is near."""
    if name in SYNONYMS and names is BROKER:
        return f"; it is a topic's name, the broker's is {SYNONYMS[name][0][0]}"
    import difflib  # a tenth of the whole import time of this package, and only for an error

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""
