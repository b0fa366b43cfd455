"""What a topic's configuration comes to, name by name, and where each value is from.

For the clients that ask: CreateTopics returns this list, DescribeConfigs tells more.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from runnel.config.dynamic import Layers
from runnel.config.registry import TOPIC
from runnel.config.support import SYNONYMS


class Source(IntEnum):
    """Kafka's ConfigSource codes."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class EffectiveConfig(NamedTuple):
    name: str
    value: str | None
    source: Source


def effective_topic_configs(
    layers: Layers, overrides: Mapping[str, str]
) -> Iterator[EffectiveConfig]:
    """Every topic-level name, sorted; `layers` are the broker's, which topics inherit."""
    for name in sorted(TOPIC):
        if name in overrides:
            yield EffectiveConfig(name, overrides[name], Source.DYNAMIC_TOPIC)
        else:
            yield inherited(name, layers)


def inherited(name: str, layers: Layers) -> EffectiveConfig:
    """What the broker's settings give a topic that says nothing, in the topic's unit."""
    for broker_name, factor in SYNONYMS.get(name, ()):
        for layer, source in (
            (layers.own, Source.DYNAMIC_BROKER),
            (layers.default, Source.DYNAMIC_DEFAULT_BROKER),
            (layers.given, Source.STATIC_BROKER),
        ):
            if broker_name in layer:
                text = layer[broker_name].strip()
                value = text if factor == 1 or text.startswith("-") else str(int(text) * factor)
                return EffectiveConfig(name, value, source)
    return EffectiveConfig(name, TOPIC[name].default, Source.DEFAULT)
