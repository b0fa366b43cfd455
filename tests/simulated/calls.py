"""Requests that members of groups and transactional producers make, over any kind of connection.

The simulator gives its lossy `Rpc`, the long suites with real processes a socket
(`tests/support/wire_rpc.py`), so that both run the same clients.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.simulated.consumer import RefusedError

GROUP: Final = 0
TRANSACTION: Final = 1
COME_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


class Caller(Protocol):
    """One connection, made anew after a break. `call` raises LostError."""

    async def call(self, request: object, version: int, *, timeout_s: float = 2.0) -> Any: ...  # noqa: ANN401  # the class follows from the request
    def close(self) -> None: ...


Connect = Callable[[str], Caller]


class CodeError(RefusedError):
    """The broker answered with this error."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)
        super().__init__(self.code.name)


def ensure_ok(code: int) -> None:
    """Raises CodeError."""
    if code != ErrorCode.NONE:
        raise CodeError(code)


async def find_coordinator(caller: Caller, kind: int, key: str) -> None:
    """There is one broker only; but who asks first brings the internal topic into being."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    response = await caller.call(request, 4, timeout_s=10.0)
    ensure_ok(response.coordinators[0].error_code)


async def committed_offsets(
    caller: Caller,
    group: str,
    partitions: Sequence[TopicPartition],
    *,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> Mapping[TopicPartition, int]:
    """Stable ones: a transaction that could still change them makes this come again."""
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for topic, index in partitions:
        asked = topics.setdefault(topic, OffsetFetchRequestTopics(name=topic))
        asked.partition_indexes.append(index)
    wanted = OffsetFetchRequestGroup(
        group_id=group, member_id=member_id, member_epoch=member_epoch, topics=list(topics.values())
    )
    request = OffsetFetchRequest(groups=[wanted], require_stable=True)
    response = await caller.call(request, 9)
    (found,) = response.groups
    ensure_ok(found.error_code)
    offsets: dict[TopicPartition, int] = {}
    for given in found.topics:
        for answer in given.partitions:
            ensure_ok(answer.error_code)
            offsets[TopicPartition(given.name, answer.partition_index)] = answer.committed_offset
    return offsets
