"""Places in partitions: commit, seek, pause, lag. What an offset means is said in `offsets`."""

import math
import time
from collections.abc import Iterable
from functools import cached_property

from runnel.client.assigning import Place
from runnel.client.backoff import Backoff
from runnel.client.configuration import OffsetResetPolicy
from runnel.client.ends import Ends
from runnel.client.failures import (
    ClientError,
    CommitError,
    ConfigurationError,
    error_of,
    explained,
)
from runnel.client.inbox import Inbox
from runnel.client.librdkafka import RDKAFKA_LOG, KafkaException
from runnel.client.message import Message
from runnel.client.offsets import EARLIEST, LATEST, Offsets, Partition, TopicPartition, checked

_COMMIT_AGAIN = {
    "REQUEST_TIMED_OUT",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNSTABLE_OFFSET_COMMIT",
    "_TRANSPORT",
    "_TIMED_OUT",
    "_WAIT_COORD",
}


class Committing(Inbox):
    """Not for use by itself: see `Consumer`."""

    _store_at = 0.0  # when librdkafka is to hear of what was handled of a batch so far

    @cached_property
    def _ends(self) -> Ends:
        settings = {
            **self.config.connection_settings(),
            **self.config.extra,
            "logger": RDKAFKA_LOG,
        }
        return Ends(settings, str(self.config.isolation_level), self._timeout_s)

    @property
    def _timeout_s(self) -> float:
        return self.config.request_timeout_ms / 1000

    # Commit

    def commit(self, offsets: Offsets | Message | None = None) -> None:
        """Commit, and wait until it is done: all that was handed out, or what is given.

        Given are a message that was handled, or `{(topic, partition): offset}` with the offset of
        the next message to read. What may succeed later is tried again, for `request_timeout_ms`.
        """
        if self.config.group_id is None:
            raise ConfigurationError("nothing can be committed without a group_id")
        if isinstance(offsets, Message):
            offsets = {offsets.topic_partition: offsets.next_offset}
        places = self.offsets_to_commit(offsets)
        if places:
            self._commit(places)
            self._committed(places)

    def offsets_to_commit(self, offsets: Offsets | None = None) -> list[Place]:
        """The given ones, or of all that was handed out since the last commit."""
        if offsets is None:
            self._handout.all_is_handled()
            self._handout.settle()
            offsets = self._handout.uncommitted
        return [
            Place(topic, partition, offset)
            for (topic, partition), offset in checked(offsets).items()
        ]

    def offsets_were_committed(self) -> None:
        """By a transaction, all that was handed out."""
        self._handout.uncommitted.clear()

    def _committed(self, places: list[Place]) -> None:
        waiting = self._handout.uncommitted
        for place in places:
            if waiting.get((place.topic, place.partition), -1) <= place.offset:
                waiting.pop((place.topic, place.partition), None)

    def _commit(self, places: list[Place]) -> None:
        deadline = time.monotonic() + self._timeout_s
        for wait_s in Backoff(first_ms=50, max_ms=1000).waits_s():
            try:
                results = self.raw.commit(offsets=places, asynchronous=False) or []
                failed = [result.error for result in results if result.error is not None]
                if not failed:
                    return
                error = failed[0]
            except KafkaException as exception:
                error = error_of(exception)
            if error.name() not in _COMMIT_AGAIN or time.monotonic() + wait_s > deadline:
                raise explained(error, "the offsets were not committed", CommitError)
            time.sleep(wait_s)

    def store_handled(self) -> None:
        """All that was handed out was handled: the next automatic commit may have it."""
        self._handout.all_is_handled()
        self.store()

    def take(self, limit: int) -> list[Message]:
        """Hand out; what was handed out before counts as handled."""
        if time.monotonic() >= self._store_at:
            self._store_again()
        return self._handout.take(limit)

    def take_one(self) -> Message | None:
        """The same with one."""
        if time.monotonic() >= self._store_at:
            self._store_again()
        return self._handout.take_one()

    def _store_again(self) -> None:
        """A reader may take longer over one batch than until the next automatic commit."""
        self.store_handled()
        interval_s = self.config.auto_commit_interval_ms / 2000
        self._store_at = time.monotonic() + interval_s if self._is_auto_commit else math.inf

    @property
    def _is_auto_commit(self) -> bool:
        return self.config.enable_auto_commit and self.config.group_id is not None

    def store(self) -> None:
        """Give librdkafka what was handled, for its next automatic commit."""
        handout = self._handout
        handout.settle()
        if not self._is_auto_commit:
            return
        for (topic, partition), offset in handout.uncommitted.items():
            try:
                self.raw.store_offsets(offsets=[Place(topic, partition, offset)])
            except KafkaException as exception:
                if error_of(exception).name() != "_STATE":  # not ours any more
                    raise explained(error_of(exception), "offsets were not stored") from None
        handout.uncommitted.clear()

    def committed(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """What the group has committed: the next message to read, of those that have it."""
        wanted = list(self._assignment.partitions if partitions is None else partitions)
        if not wanted:
            return {}
        try:
            places = self.raw.committed([Place(*one) for one in wanted], timeout=self._timeout_s)
        except KafkaException as exception:
            raise explained(error_of(exception), "committed offsets are unknown") from None
        return {
            TopicPartition(at.topic, at.partition): at.offset for at in places if at.offset >= 0
        }

    # Seek

    def seek(self, topic: str, partition: int, offset: int | str) -> None:
        """Read next from this offset, from "earliest" or from "latest".

        A partition that is not assigned yet starts there when it is; in a group `on_assign` may
        seek, too. Nothing is committed by this.
        """
        if isinstance(offset, str):
            offset = self._end_named(topic, partition, offset)
        checked({(topic, partition): offset})
        self._handout.drop([(topic, partition)])
        self._assignment.ends.pop((topic, partition), None)
        self._seek({(topic, partition): offset})

    def _end_named(self, topic: str, partition: int, name: str) -> int:
        """As it is now: what is written from now on comes after "latest"."""
        if name not in (EARLIEST, LATEST):
            raise ConfigurationError(f"seek to an offset, {EARLIEST!r} or {LATEST!r}")
        ask = self._ends.starts if name == EARLIEST else self._ends.ends
        return ask([(topic, partition)])[topic, partition]

    def seek_to_time(self, timestamp_ms: int) -> None:
        """Read all assigned partitions next from the first message of that time or later."""
        wanted = [Place(*partition, timestamp_ms) for partition in self._assignment.partitions]
        try:
            places = self.raw.offsets_for_times(wanted, timeout=self._timeout_s)
        except KafkaException as exception:
            raise explained(error_of(exception), "no offsets for that time") from None
        for place in places:
            self.seek(place.topic, place.partition, LATEST if place.offset < 0 else place.offset)

    def seek_to_committed(self) -> None:
        """Read again all that was handed out and not committed.

        That is from the committed offset on, if it was committed since this consumer began to read
        the partition; if not, from where it began, which `seek` or `auto_offset_reset` has decided.
        """
        self._handout.all_is_handled()
        self._handout.settle()
        begun, positions = dict(self._handout.begun), self._handout.positions()
        committed = self.committed(begun)
        for (topic, partition), first in begun.items():
            offset = committed.get((topic, partition), first)
            is_ours = first <= offset <= positions[topic, partition]
            self.seek(topic, partition, offset if is_ours else first)

    # Pause

    def pause(self, partitions: Iterable[Partition] | None = None) -> None:
        """Hand out nothing of these, by default of all, until `resume`."""
        wanted = list(self._assignment.partitions if partitions is None else partitions)
        waiting = self._handout.take_back_waiting(wanted)
        for partition in waiting:  # that it had come to the end is true no more
            self._assignment.ends.pop(partition, None)
        self._hand_over()
        self.raw.pause([Place(*partition) for partition in wanted])
        self._seek(waiting)

    def resume(self, partitions: Iterable[Partition] | None = None) -> None:
        wanted = self._assignment.partitions if partitions is None else partitions
        self.raw.resume([Place(*partition) for partition in wanted])

    # Where we are

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next message that will be handed out."""
        return self._positions([(topic, partition)])[topic, partition]

    def lag(self) -> dict[Partition, int]:
        """How many messages of each assigned partition have not been handed out yet."""
        assigned = list(self._assignment.partitions)
        positions, ends = self._positions(assigned), self._ends.ends(assigned)
        return {TopicPartition(*one): max(ends[one] - positions[one], 0) for one in assigned}

    def _positions(self, partitions: list[Partition]) -> dict[Partition, int]:
        """Of those that nothing was handed out of: what is committed, or what the settings say."""
        known = self._handout.positions()
        unread = [partition for partition in partitions if partition not in known]
        if unread and self.config.group_id is not None:
            known.update(self.committed(unread))
            unread = [partition for partition in unread if partition not in known]
        if self.config.auto_offset_reset is OffsetResetPolicy.LATEST:
            return {**self._ends.ends(unread), **known}
        return {**self._ends.starts(unread), **known}

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset that is kept and the end, where the next message will be written."""
        place = (topic, partition)
        return self._ends.starts([place])[place], self._ends.ends([place])[place]

    def ends_ahead(self) -> dict[Partition, int]:
        """The ends, as they are now, of the assigned partitions that have not been read so far."""
        assigned = list(self._assignment.partitions)
        positions, ends = self._positions(assigned), self._ends.ends(assigned)
        return {one: end for one, end in ends.items() if positions[one] < end}

    def still_ahead(self, ends: Offsets) -> dict[Partition, int]:
        """Those of the partitions that are still ours and have not been read to these ends.

        librdkafka says so where the end has no message: a marker or what compaction has removed.
        """
        if self._is_closed:
            raise ClientError("this consumer was closed before the end was reached")
        positions = self._handout.positions()
        return {
            partition: end
            for partition, end in ends.items()
            if partition in self._assignment.partitions
            and max(positions.get(partition, 0), self._assignment.ends.get(partition, 0)) < end
        }
