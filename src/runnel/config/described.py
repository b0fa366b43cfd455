"""Settings as DescribeConfigs tells of them: value, where it is from, and what else it could be.

The order of sources and of synonyms is Kafka's, its oddities included: a topic's `retention.ms`
that follows from `log.retention.hours` counts as a default, because only synonyms from the
broker's first name on are told.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from runnel.config.alterations import CLIENT_METRICS
from runnel.config.definition import ConfigError, Definition
from runnel.config.dynamic import Layers
from runnel.config.effective import Source, inherited
from runnel.config.meanings import meaning
from runnel.config.registry import BROKER, GROUP, TOPIC, broker_synonyms
from runnel.config.support import DYNAMIC_ONLY_NAMES, SYNONYMS

UNKNOWN_TYPE = 0
_ONLY_IF_SET = frozenset(definition.name for definition in DYNAMIC_ONLY_NAMES)


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    name: str
    value: str | None
    source: Source
    synonyms: list[Synonym]
    type_code: int = UNKNOWN_TYPE
    is_read_only: bool = False
    is_sensitive: bool = False
    documentation: str | None = None


def describe_topic(overrides: Mapping[str, str], layers: Layers) -> Iterator[Described]:
    for name, definition in sorted(TOPIC.items()):
        text = overrides.get(name)
        brokers = [broker for broker, _ in SYNONYMS.get(name, ())]
        synonyms = _synonyms(brokers[0], layers) if brokers else []
        if text is None:
            text = inherited(name, layers).value
        else:
            synonyms = [Synonym(name, canonical(definition, text), Source.DYNAMIC_TOPIC), *synonyms]
        yield _described(definition, canonical(definition, text), synonyms, is_read_only=False)
    for name in sorted(overrides.keys() - TOPIC):  # of a newer version; hidden, as of a broker
        told = [Synonym(name, None, Source.DYNAMIC_TOPIC)]
        yield Described(name, None, Source.DYNAMIC_TOPIC, told, is_sensitive=True)


def describe_broker(layers: Layers) -> Iterator[Described]:
    number = layers.given.get("node.id", layers.given.get("broker.id"))
    if number is not None:  # Kafka has two names for one number
        both = {"node.id": number, "broker.id": number, **layers.given}
        layers = layers._replace(given=both)
    merged = layers.merged
    for name in sorted({*BROKER.keys() - _ONLY_IF_SET, *merged}):
        definition = BROKER.get(name)
        if definition is None:  # a name that Kafka does not know may be a secret, so it is one
            yield Described(name, None, Source.STATIC_BROKER, [], is_sensitive=True)
            continue
        value = canonical(definition, merged.get(name, definition.default))
        synonyms = _synonyms(name, layers)
        yield _described(definition, value, synonyms, is_read_only=not definition.is_dynamic)


def describe_broker_default(default: Mapping[str, str]) -> Iterator[Described]:
    """Only what was set for all brokers."""
    for name, text in sorted(default.items()):
        if name in BROKER:
            synonyms = [Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER)]
            yield _described(BROKER[name], text, synonyms, is_read_only=False)


def describe_group(stored: Mapping[str, str], layers: Layers) -> Iterator[Described]:
    """A group inherits `group.<name>` of the broker, where there is such a name."""
    for name, definition in sorted(GROUP.items()):
        broker_name = f"group.{name}"
        inherits = broker_name in BROKER
        synonyms = _synonyms(broker_name, layers) if inherits else []
        text = layers.text(broker_name) if inherits else definition.default
        if name in stored:
            text = stored[name]
            synonyms = [Synonym(name, canonical(definition, text), Source.GROUP), *synonyms]
        elif not inherits:
            synonyms = [Synonym(name, canonical(definition, text), Source.DEFAULT)]
        yield _described(definition, canonical(definition, text), synonyms, is_read_only=False)


def describe_client_metrics(stored: Mapping[str, str]) -> Iterator[Described]:
    for name, definition in sorted(CLIENT_METRICS.items()):
        value = canonical(definition, stored.get(name, definition.default))
        given = [Synonym(name, value, Source.CLIENT_METRICS)] if name in stored else []
        yield _described(definition, value, given, is_read_only=False)


def canonical(definition: Definition, text: str | None) -> str | None:
    """The text as Java prints the value that was read from it."""
    if text is None:
        return None
    try:
        value = definition.parse(text)
    except ConfigError:
        return text  # Kafka's own default breaks its own bound here and there
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return repr(value).replace("e+", "E").replace("e-", "E-")
        case _:
            return str(value)


def _described(
    definition: Definition, value: str | None, synonyms: list[Synonym], *, is_read_only: bool
) -> Described:
    hidden = definition.is_sensitive
    if hidden:
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    return Described(
        definition.name,
        None if hidden else value,
        synonyms[0].source if synonyms else Source.DEFAULT,
        synonyms,
        definition.type_code,
        is_read_only,
        hidden,
        meaning(definition) or None,
    )


def _synonyms(name: str, layers: Layers) -> list[Synonym]:
    names = broker_synonyms(name)
    defaults = {
        n: text for n in names if (text := canonical(BROKER[n], BROKER[n].default)) is not None
    }
    found = [
        Synonym(n, layer[n], source)
        for layer, source in (
            (layers.own, Source.DYNAMIC_BROKER),
            (layers.default, Source.DYNAMIC_DEFAULT_BROKER),
            (layers.given, Source.STATIC_BROKER),
            (defaults, Source.DEFAULT),
        )
        for n in names
        if n in layer
    ]
    return _from_first(found, name)


def _from_first(synonyms: Iterable[Synonym], name: str) -> list[Synonym]:
    kept: list[Synonym] = []
    for synonym in synonyms:
        if kept or synonym.name == name:
            kept.append(synonym)
    return kept
