"""A member of a classic group: what it can do, what it was given, and what it waits for."""

from collections.abc import Collection, Sequence
from typing import Final

from runnel.coordinator.runtime import Deferred
from runnel.coordinator.timers import Timer
from runnel.ports import Clock
from runnel.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from runnel.wire.messages.sync_group import SyncGroupResponse

NO_ASSIGNMENT: Final = b""


class Session:
    """Runs out unless the member is heard of."""

    __slots__ = ("_clock", "_timer")

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self._timer = timer
        self._clock = clock

    def extend(self, timeout_ms: int) -> None:
        self._timer.start(self._clock.monotonic_ms() + timeout_ms)

    def end(self) -> None:
        self._timer.cancel()


class ClassicMember:
    """In `ClassicGroup.members`. An assignment is given by replay alone."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "joining",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Sequence[JoinGroupRequestProtocol],
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols  # the preferred one first
        self.assignment = assignment
        self.joining: Deferred[JoinGroupResponse] | None = None
        self.syncing: Deferred[SyncGroupResponse] | None = None
        self.session: Session | None = None
        self.is_new = False  # has not heard of its first generation, so it cannot send heartbeats

    @property
    def is_heard_of(self) -> bool:
        """A member that waits for an answer need not send heartbeats, unless it is new: then it
        may have given up waiting long ago, and nobody would notice."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def extend_session(self) -> None:
        if self.session is not None:
            self.session.extend(self.session_timeout_ms)

    def metadata_bytes(self) -> int:
        return metadata_bytes(self.protocols)

    def protocol_names(self) -> set[str]:
        return {protocol.name for protocol in self.protocols}

    def metadata(self, protocol_name: str | None) -> bytes:
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not know the protocol {protocol_name}")

    def vote(self, candidates: Collection[str]) -> str:
        return next(each.name for each in self.protocols if each.name in candidates)

    def matches(self, protocols: Sequence[JoinGroupRequestProtocol]) -> bool:
        return len(self.protocols) == len(protocols) and all(
            mine.name == other.name and mine.metadata == other.metadata
            for mine, other in zip(self.protocols, protocols, strict=True)
        )


def metadata_bytes(protocols: Sequence[JoinGroupRequestProtocol]) -> int:
    return sum(len(each.name) + len(each.metadata) for each in protocols)
