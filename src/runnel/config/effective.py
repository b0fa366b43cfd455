"""What a topic's configuration comes to, name by name, and where each value is from.

For the clients that ask: CreateTopics returns this list, DescribeConfigs does.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from runnel.config.definition import Definition
from runnel.config.registry import TOPIC
from runnel.config.support import SYNONYMS


class Source(IntEnum):
    """Kafka's ConfigSource codes."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class EffectiveConfig(NamedTuple):
    name: str
    value: str | None
    source: Source


def effective_topic_configs(
    given: Mapping[str, str], overrides: Mapping[str, str]
) -> Iterator[EffectiveConfig]:
    """`given` is what the broker was started with; every topic-level name is told, sorted."""
    for name, definition in sorted(TOPIC.items()):
        if name in overrides:
            yield EffectiveConfig(name, overrides[name], Source.DYNAMIC_TOPIC)
        else:
            yield _from_broker(name, definition, given)


def _from_broker(name: str, definition: Definition, given: Mapping[str, str]) -> EffectiveConfig:
    for broker_name, factor in SYNONYMS.get(name, ()):
        if broker_name in given:
            text = given[broker_name]
            value = text if factor == 1 or text.startswith("-") else str(int(text) * factor)
            return EffectiveConfig(name, value, Source.STATIC_BROKER)
    return EffectiveConfig(name, definition.default, Source.DEFAULT)
