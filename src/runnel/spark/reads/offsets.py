"""Offsets of a read, and the JSON that people write and checkpoints keep.

`{"orders": {"0": 23, "1": 7}, "@topicIds": {"orders": "y8Fm0d9fQhqvyyVR"}}`: the next offset to
read of each partition, as Spark's Kafka source writes it, and under a key that can be no topic the
ids of the topics, by which one that was deleted and made anew is known. Spark compares offsets as
text, so the order is always the same: topics by name, partitions by number.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runnel.arrow.errors import OptionError
from runnel.types import TopicPartition

TOPIC_IDS: Final = "@topicIds"
LATEST: Final = -1
EARLIEST: Final = -2
OFFSET_MAX: Final = (1 << 63) - 1
EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
ASSIGN_EXAMPLE: Final = '{"topicA":[0,1],"topicB":[0,1]}'

OffsetMap = Mapping[TopicPartition, int]
OffsetDict = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Offsets:
    """The next offset to read by partition, and the ids of the topics as far as they are known."""

    by_partition: OffsetMap
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Mapping[str, Mapping[str, Any]]) -> "Offsets":
        """What Spark hands back of a checkpoint. Raises ValueError for what is no offset JSON."""
        ids = found.get(TOPIC_IDS, {})
        offsets = {
            TopicPartition(topic, int(index)): int(offset)
            for topic, rows in found.items()
            if topic != TOPIC_IDS
            for index, offset in rows.items()
        }
        return cls(offsets, dict(ids))

    def as_dict(self) -> OffsetDict:
        """In the one order in which it is always written."""
        found: OffsetDict = {}
        for at in sorted(self.by_partition):
            found.setdefault(at.topic, {})[str(at.index)] = self.by_partition[at]
        ids = {topic: self.topic_ids[topic] for topic in found if topic in self.topic_ids}
        if ids:
            found[TOPIC_IDS] = ids
        return found


def parse_offsets(option: str, text: str, *, least: int = EARLIEST) -> Offsets:
    """Of an option. Raises OptionError naming it."""
    try:
        found = json.loads(text)
        offsets = Offsets.of(found)
    except (ValueError, TypeError, AttributeError):
        raise OptionError(f"{option}={text}: Expected e.g. {EXAMPLE}") from None
    for at, offset in offsets.by_partition.items():
        if not least <= offset <= OFFSET_MAX or at.index < 0:
            raise OptionError(
                f"{option}={text}: {offset} of {at} is no offset; -1 means latest, -2 earliest"
            )
    return offsets


def parse_timestamps(option: str, text: str) -> dict[TopicPartition, int]:
    """Milliseconds since 1970 by partition. Raises OptionError."""
    try:
        found = Offsets.of(json.loads(text)).by_partition
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA":{"0":1700000000000,"1":1700000000000}}'
        raise OptionError(f"{option}={text}: Expected e.g. {example}") from None
    for at, timestamp_ms in found.items():
        if not 0 <= timestamp_ms <= OFFSET_MAX or at.index < 0:
            raise OptionError(f"{option}={text}: {timestamp_ms} of {at} is no time in milliseconds")
    return dict(found)


def parse_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """What is assigned: lists of partitions by topic. Raises OptionError."""
    try:
        found = {
            TopicPartition(topic, int(index))
            for topic, rows in json.loads(text).items()
            for index in rows
        }
    except (ValueError, TypeError, AttributeError):
        raise OptionError(f"{option}={text}: Expected e.g. {ASSIGN_EXAMPLE}") from None
    if not found or min(at.index for at in found) < 0:
        raise OptionError(
            f"No topicpartitions to assign as specified value for option '{option}' is '{text}';"
            f" Expected e.g. {ASSIGN_EXAMPLE}"
        )
    return tuple(sorted(found))


def listed(partitions: Iterable[TopicPartition], most: int = 12) -> str:
    """For people: the first few of many partitions."""
    names = [str(at) for at in sorted(partitions)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
