"""Many members of groups driven by one process: a connection each, heartbeats when they are due.

A connection has one request open at a time; what falls due meanwhile follows its reply. Heartbeats
of the members are spread evenly over the interval, so that a wall time does not depend on luck.
"""

import heapq
import itertools
import selectors
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.coordination import TIMEOUT_S
from bench.members import Member, commit_request
from runnel.bench.pipeline import LoadError
from runnel.client.raw import Address, Topic, WireClient, decode_reply, encode_frame
from runnel.errors import ErrorCode
from runnel.wire.messages.offset_commit import OffsetCommitResponse
from runnel.wire.schema import schema_of

COMMIT_VERSION = 9  # by the topic's name
RETRY_S = 0.05
Connect = Callable[[str, Topic], Member]


class Present:
    """A member with its connection. `is_open`: a reply is awaited."""

    def __init__(self, member: Member, address: Address, versions: Callable[[int], int]) -> None:
        self.member = member
        self.is_open = False
        self.is_commit_due = False
        self.is_beat_due = False
        self.client = WireClient(address, timeout_s=TIMEOUT_S)
        self._versions = versions
        self._awaited = 0, 0  # key and version

    def send(self, request: object, version: int | None = None) -> None:
        key = schema_of(type(request)).api_key
        assert key is not None
        self._awaited = key, version or self._versions(key)
        self.is_open = True
        self.client.sock.sendall(encode_frame(request, self._awaited[1]))

    def receive(self) -> Any:  # noqa: ANN401  # of the request that is open
        _, reply = decode_reply(*self._awaited, self.client.receive_frame())
        self.is_open = False
        return reply


class Crowd:
    """Use it as a context manager: at its end all leave. Raises LoadError wherever it runs."""

    def __init__(
        self, address: Address, topic: Topic, beat_s: float, commit_s: float | None = None
    ) -> None:
        self._address = address
        self._topic = topic
        self._beat_s = beat_s
        self._commit_s = commit_s
        self._present: list[Present] = []
        self._selector = selectors.DefaultSelector()
        self._due: list[tuple[float, int, Present, bool]] = []  # the last: a commit
        self._numbers = itertools.count()
        self._asking = WireClient(address, timeout_s=TIMEOUT_S)

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *_failure: object) -> None:
        for present in self._present:
            present.client.close()
        self._selector.close()
        self._asking.close()

    @property
    def members(self) -> Sequence[Member]:
        return [present.member for present in self._present]

    def join(self, member: Member) -> None:
        """Its first request is sent, and its heartbeats follow."""
        present = Present(member, self._address, self._asking.version_of)
        self._present.append(present)
        self._selector.register(present.client.sock, selectors.EVENT_READ, present)
        present.send(member.request())
        self._remind(time.perf_counter() + self._beat_s, present, is_commit=False)

    def spread(self, beat_s: float | None = None) -> None:
        """From now on, heartbeats (and commits) one after the other over their interval."""
        now, count = time.perf_counter(), len(self._present)
        self._beat_s = beat_s or self._beat_s
        self._due.clear()
        for at, present in enumerate(self._present):
            self._remind(now + self._beat_s * at / count, present, is_commit=False)
            if self._commit_s is not None:
                self._remind(now + self._commit_s * at / count, present, is_commit=True)

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> bool:
        """For so long, or until it is over, which is asked after each reply; whether it was."""
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            while self._due and self._due[0][0] <= now:
                self._on_due(*heapq.heappop(self._due))
            until = min(end, self._due[0][0]) if self._due else end
            for key, _ in self._selector.select(max(0.0, until - now)):
                self._on_reply(key.data)
                if is_over():
                    return True
        return False

    def leave(self) -> None:
        """All of them, each after the reply that it waits for."""
        for present in self._present:
            if present.is_open:
                present.receive()
            present.send(present.member.leave())
        for present in self._present:
            present.receive()

    def _remind(self, at: float, present: Present, *, is_commit: bool) -> None:
        heapq.heappush(self._due, (at, next(self._numbers), present, is_commit))

    def _on_due(self, at: float, _number: int, present: Present, is_commit: bool) -> None:
        if is_commit:
            present.is_commit_due = True
            self._remind(at + (self._commit_s or 0.0), present, is_commit=True)
        else:
            present.is_beat_due = True
            self._remind(at + self._beat_s, present, is_commit=False)
        self._send_due(present)

    def _send_due(self, present: Present) -> None:
        if present.is_open:
            return
        if present.is_beat_due:
            present.is_beat_due = False
            present.send(present.member.request())
        elif present.is_commit_due:
            present.is_commit_due = False
            if present.member.owned:
                present.send(commit_request(present.member, self._topic), COMMIT_VERSION)

    def _on_reply(self, present: Present) -> None:
        reply = present.receive()
        if isinstance(reply, OffsetCommitResponse):
            for row in reply.topics[0].partitions:
                if row.error_code not in (0, ErrorCode.REBALANCE_IN_PROGRESS):
                    raise LoadError(f"a commit was refused: {ErrorCode(row.error_code).name}")
        elif present.member.on_reply(reply):
            present.is_beat_due = True
        elif present.member.epoch <= 0:  # refused for the moment
            self._remind(time.perf_counter() + RETRY_S, present, is_commit=False)
        self._send_due(present)


def is_settled(members: Sequence[Member], partition_count: int) -> bool:
    """All in one epoch, each with a share, and every partition has one owner."""
    first = members[0].epoch
    if first <= 0 or any(member.epoch != first or not member.owned for member in members):
        return False
    owned = [index for member in members for index in member.owned]
    return len(owned) == partition_count and len(set(owned)) == partition_count
