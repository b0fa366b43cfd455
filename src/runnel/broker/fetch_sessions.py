"""Fetch sessions (KIP-227): a client names its partitions once and later only what changed.

A session is found by id and checked by epoch: every request must carry the next one, so a lost
reply or a second client on the same session is noticed. Slots are few; a full cache gives one up
only if it was idle for two minutes, or had that long and is smaller than the newcomer.
"""

import random
from collections import OrderedDict
from typing import Final

from runnel.broker.partition import NO_EPOCH, Partition, Place
from runnel.broker.watching import Watch
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
FIRST_EPOCH: Final = 0
IDLE_MS_MAX: Final = 120_000
_EPOCH_MAX: Final = 2**31 - 1
_NOWHERE: Final = Place()

TopicKey = bytes | str  # a topic id from v13 on, a name before


class SessionPartition:
    """What a client asked for in one partition, and what it was last told."""

    __slots__ = (
        "bytes_max",
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "place",
        "topic",
        "was_error",
    )

    def __init__(self, topic: TopicKey, asked: FetchPartition) -> None:
        self.topic = topic
        self.index = asked.partition
        self.place = _NOWHERE  # where it was found last; it may be gone
        self.high_watermark = -1
        self.log_start_offset = -1
        self.was_error = False
        self.ask(asked)

    def ask(self, asked: FetchPartition) -> None:
        self.fetch_offset = asked.fetch_offset
        self.bytes_max = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def is_quiet(self, partition: Partition, committed_only: bool) -> bool:
        """Nothing to read and nothing to tell: what most partitions of most sessions are."""
        log, epoch = partition.log, partition.leader_epoch
        bound = partition.last_stable_offset if committed_only else partition.high_watermark
        return (
            self.fetch_offset == bound
            and self.high_watermark == partition.high_watermark
            and self.log_start_offset == log.log_start_offset
            and partition.is_leader  # one that was dropped never leads again
            and not self.was_error
            and (self.current_leader_epoch == NO_EPOCH or self.current_leader_epoch == epoch)
            and (self.last_fetched_epoch == NO_EPOCH or self.last_fetched_epoch == epoch)
            and log.offline is None
        )

    def is_news(self, served: "Served") -> bool:
        """Whether an incremental reply must mention it. Remembers what is told."""
        news = (
            served.size > 0
            or served.is_error
            or self.was_error
            or served.high_watermark != self.high_watermark
            or served.log_start_offset != self.log_start_offset
            or served.diverges
        )
        self.high_watermark = served.high_watermark
        self.log_start_offset = served.log_start_offset
        self.was_error = served.is_error
        return news


class Served:
    """What a fetch would say of one partition: its answer, and what of that is asked again."""

    __slots__ = (
        "data",
        "diverges",
        "high_watermark",
        "is_cut",
        "is_error",
        "log_start_offset",
        "size",
        "wanted",
    )

    def __init__(
        self,
        wanted: SessionPartition,
        data: PartitionData,
        size: int,
        high_watermark: int,
        log_start_offset: int,
        *,
        is_error: bool = False,
    ) -> None:
        self.wanted = wanted
        self.data = data
        self.size = size  # of its records, in bytes
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.is_error = is_error
        self.diverges = False  # the reader's history from ours
        self.is_cut = False  # by a limit: there is more


class Session:
    """The partitions of one client, in the order in which they are served."""

    __slots__ = ("created_ms", "epoch", "id", "partitions", "used_ms", "watch")

    def __init__(self, session_id: int, now_ms: int) -> None:
        self.id = session_id
        self.epoch = FIRST_EPOCH
        self.partitions: dict[tuple[TopicKey, int], SessionPartition] = {}
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.watch: Watch | None = None  # unless it is forgotten at once

    def update(self, request: FetchRequest, by_id: bool) -> None:
        for topic in request.topics:
            key: TopicKey = topic.topic_id if by_id else topic.topic
            for asked in topic.partitions:
                known = self.partitions.get((key, asked.partition))
                if known is None:
                    self.partitions[key, asked.partition] = SessionPartition(key, asked)
                else:
                    known.ask(asked)
        for forgotten in request.forgotten_topics_data:
            key = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                self.partitions.pop((key, index), None)

    def serve_last(self, partition: SessionPartition) -> None:
        """Who got bytes this time stands behind the others next time."""
        key = partition.topic, partition.index
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = partition


class FetchSessions:
    """Owned by the broker. Ordered by last use, oldest first."""

    __slots__ = ("_ended", "_random", "_sessions", "_slots_max")

    def __init__(self, slots_max: int, chance: random.Random) -> None:
        self._slots_max = slots_max
        self._random = chance
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self._ended: list[Watch] = []  # of sessions that are closed, for fetches that still wait

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(self, session_id: int, epoch: int, now_ms: int) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise RunnelError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"session {session_id}")
        expected = session.epoch + 1 if session.epoch < _EPOCH_MAX else 1
        if epoch != expected:
            raise RunnelError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {session_id}: epoch {epoch}, expected {expected}",
            )
        session.epoch = epoch
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        return session

    def open(self, size: int, now_ms: int) -> Session:
        """A new session; its id is 0, and it is forgotten at once, where there is no slot."""
        if size == 0 or not self._has_slot_for(size, now_ms):
            return Session(NO_SESSION, now_ms)
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.randrange(1, _EPOCH_MAX)
        session = self._sessions[session_id] = Session(session_id, now_ms)
        session.watch = Watch()
        return session

    def _has_slot_for(self, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots_max:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        idle = now_ms - oldest.used_ms > IDLE_MS_MAX
        had_its_time = now_ms - oldest.created_ms > IDLE_MS_MAX
        if idle or (had_its_time and len(oldest.partitions) < size):
            self.close(oldest.id)
            return True
        return False

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None and session.watch is not None:
            self._ended.append(session.watch)
        for watch in self._ended:
            if not watch.fetches.waiters:
                watch.lift()
        self._ended = [watch for watch in self._ended if watch.fetches.waiters]
