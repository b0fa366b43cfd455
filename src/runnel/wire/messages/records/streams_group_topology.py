"""StreamsGroupTopology (key 23); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=23, versions=(0, 0))
class StreamsGroupTopologyKey:
    group_id: str = wire(STRING, default="")


@struct
class TopicConfig:
    key: str = wire(STRING, default="")
    value: str = wire(STRING, default="")


@struct
class TopicInfo:
    name: str = wire(STRING, default="")
    partitions: int = wire(INT32, default=0)
    replication_factor: int = wire(INT16, default=0)
    topic_configs: list[TopicConfig] = wire(array_of(TopicConfig), default_factory=list)


@struct
class CopartitionGroup:
    source_topics: list[int] = wire(array_of(INT16), default_factory=list)
    source_topic_regex: list[int] = wire(array_of(INT16), default_factory=list)
    repartition_source_topics: list[int] = wire(array_of(INT16), default_factory=list)


@struct
class Subtopology:
    subtopology_id: str = wire(STRING, default="")
    source_topics: list[str] = wire(array_of(STRING), default_factory=list)
    source_topic_regex: list[str] = wire(array_of(STRING), default_factory=list)
    state_changelog_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)
    repartition_sink_topics: list[str] = wire(array_of(STRING), default_factory=list)
    repartition_source_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)
    copartition_groups: list[CopartitionGroup] = wire(
        array_of(CopartitionGroup), default_factory=list
    )


@message(api_key=23, versions=(0, 0), flexible_since=0)
class StreamsGroupTopologyValue:
    epoch: int = wire(INT32, default=0)
    subtopologies: list[Subtopology] = wire(array_of(Subtopology), default_factory=list)
