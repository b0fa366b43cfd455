"""Partitions of topics as people write them: `orders`, `orders:0`, `orders:0,2`, `orders:1-4`."""

import re
from collections.abc import Iterable
from typing import Final

from runnel.cli.output import CommandError
from runnel.client.cluster import Cluster, RefusedError
from runnel.errors import ErrorCode
from runnel.types import TopicPartition

PARTITION_MAX: Final = 1_000_000
_RANGE: Final = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")


def partitions_of(cluster: Cluster, option: str, texts: Iterable[str]) -> list[TopicPartition]:
    """All that are named, of topics that are there. Raises CommandError and ClientError."""
    found: set[TopicPartition] = set()
    for text in texts:
        topic, indexes = parsed(option, text)
        there = {row.partition_index for row in cluster.topic(topic).partitions}
        for index in sorted(there) if indexes is None else indexes:
            if index not in there:
                message = f"topic {topic} has no partition {index}; it has {len(there)}"
                raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            found.add(TopicPartition(topic, index))
    return sorted(found)


def parsed(option: str, text: str) -> tuple[str, list[int] | None]:
    """The topic and the partitions, None for all of them. Raises CommandError."""
    topic, colon, listed = text.partition(":")
    if not topic or (colon and not listed):
        raise CommandError(f"{option} wants TOPIC or TOPIC:0,1, not {text!r}.")
    if not colon:
        return topic, None
    indexes: list[int] = []
    for part in listed.split(","):
        bounds = _RANGE.fullmatch(part.strip())
        first = int(bounds[1]) if bounds else 0
        last = int(bounds[2] or first) if bounds else -1
        if not first <= last <= PARTITION_MAX:
            raise CommandError(f"{option} {text!r}: {part!r} is no partition; write 0, 0,2 or 1-4.")
        indexes += range(first, last + 1)
    return topic, indexes
