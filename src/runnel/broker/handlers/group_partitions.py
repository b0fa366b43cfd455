"""Which partitions of a request about a group's offsets are there, and may be touched."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from runnel.broker.context import RequestContext
from runnel.broker.security import Operation, Resource
from runnel.cluster.image import Image
from runnel.errors import ErrorCode

# To find a member in its enum takes a microsecond, and every commit would do it five times.
READ: Final = Operation.READ
TOPIC: Final = Resource.TOPIC
NONE: Final = ErrorCode.NONE


class Asked(Protocol):
    """A topic of OffsetCommit, TxnOffsetCommit or OffsetDelete, in a request or its response.

    An unknown id has no name.
    """

    name: str
    partitions: list[Any]  # each with a partition_index


T = TypeVar("T", bound=Asked)


class Refused(NamedTuple):
    name: str
    topic_id: bytes
    indexes: list[int]
    code: ErrorCode


def sort_out(
    context: RequestContext, image: Image, topics: Sequence[T]
) -> tuple[list[T], list[Refused]]:
    """What may be done, and what is answered for the rest."""
    accepted: list[T] = []
    refused: list[Refused] = []
    for topic in topics:
        found = image.topics.get(topic.name)
        code = NONE
        if not topic.name:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not context.may(READ, TOPIC, topic.name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif found is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if found is None or code is not NONE:
            refused.append(refusal(topic, code))
            continue
        count = len(found.partitions)
        if all(0 <= each.partition_index < count for each in topic.partitions):
            accepted.append(topic)
            continue
        there, absent = copy(topic), copy(topic)
        there.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
        absent.partitions = [p for p in topic.partitions if not 0 <= p.partition_index < count]
        refused.append(refusal(absent, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if there.partitions:
            accepted.append(there)
    return accepted, refused


def refusal(topic: Asked, code: ErrorCode) -> Refused:
    indexes = [each.partition_index for each in topic.partitions]
    return Refused(topic.name, getattr(topic, "topic_id", b""), indexes, code)


def merged(refused: list[T], answered: list[T]) -> list[T]:
    """Each topic once, though some of its partitions may have been refused before the others."""
    topics = {(each.name, getattr(each, "topic_id", b"")): each for each in refused}
    for topic in answered:
        found = topics.setdefault((topic.name, getattr(topic, "topic_id", b"")), topic)
        if found is not topic:
            found.partitions += topic.partitions
    return list(topics.values())
