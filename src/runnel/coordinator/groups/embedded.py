"""What consumers say inside the classic protocol, and are told: their subscription, their part.

The coordinator of a classic group need not understand it. That of a consumer group must, for those
of its members that still speak the classic protocol.
"""

from collections.abc import Collection, Mapping
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from runnel.coordinator.groups.topics_view import TopicsView
from runnel.errors import WireError
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from runnel.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_INT16: Final = Struct(">h")
NEWEST: Final = 3
Parts = Mapping[bytes, Collection[int]]
"""Partitions by topic id."""


def version_of(written: bytes) -> int:
    """A later one is read as the newest that is known here. Raises WireError."""
    try:
        (version,) = _INT16.unpack_from(written)
    except struct_error as error:
        raise WireError(f"an embedded message is cut short: {error}") from None
    if version < 0:
        raise WireError(f"an embedded message of version {version}")
    return min(int(version), NEWEST)


def _read(kind: type[Any], written: bytes) -> Any:  # noqa: ANN401  # of that kind
    message, _ = codec_for(kind, version_of(written)).read(memoryview(written), _INT16.size)
    return message


def read_subscription(written: bytes) -> ConsumerProtocolSubscription:
    """Raises WireError."""
    found: ConsumerProtocolSubscription = _read(ConsumerProtocolSubscription, written)
    return found


def owned_parts(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> Parts:
    return _by_id(((each.topic, each.partitions) for each in subscription.owned_partitions), topics)


def read_assignment(written: bytes) -> ConsumerProtocolAssignment:
    """Who has never been assigned anything has nothing. Raises WireError."""
    if not written:
        return ConsumerProtocolAssignment()
    found: ConsumerProtocolAssignment = _read(ConsumerProtocolAssignment, written)
    return found


def assigned_parts(assignment: ConsumerProtocolAssignment, topics: TopicsView) -> Parts:
    assigned = assignment.assigned_partitions
    return _by_id(((each.topic, each.partitions) for each in assigned), topics)


def _by_id(named: Any, topics: TopicsView) -> Parts:  # noqa: ANN401  # pairs of name and partitions
    found: dict[bytes, list[int]] = {}
    for name, partitions in named:
        topic_id = topics.id_of(name)
        if topic_id is not None:
            found.setdefault(topic_id, []).extend(partitions)
    return found


def write_assignment(parts: Parts, version: int, topics: TopicsView) -> bytes:
    assigned = [
        TopicPartition(topic=name, partitions=sorted(partitions))
        for topic_id, partitions in parts.items()
        if (name := topics.name_of(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(
        assigned_partitions=sorted(assigned, key=lambda each: each.topic)
    )
    return _INT16.pack(version) + codec_for(ConsumerProtocolAssignment, version).write(message)
