"""What a consumer has handed out, what of that was handled, and what is to be committed.

Messages come from librdkafka by the batch and are handed out all at once or one by one. A message
counts as *handled* when its reader asks for the next one or commits: only then may its offset be
committed, so that a crash repeats messages and loses none. Offsets are worked out per batch, not
per message.

    batch    [ 0 1 2 | 3 4 | 5 6 7 ]
               handled  in hand  waiting
             settled <= handled <= handed
"""

from collections.abc import Iterable

from runnel.client.message import Message, positions_after
from runnel.client.offsets import Partition


class Handout:
    """Of one consumer. Not for several threads at a time."""

    def __init__(self) -> None:
        self._batch: list[Message] = []
        self._settled = 0  # before this index: offsets are in `uncommitted`
        self._handled = 0  # before this index: the reader is done
        self._handed = 0  # before this index: the reader has them
        self.read: dict[Partition, int] = {}  # the next offset, by what was handed out
        self.uncommitted: dict[Partition, int] = {}
        self.begun: dict[Partition, int] = {}  # the first offset handed out since it was sought
        self.topics: set[str] = set()  # that were ever read: a message may come late

    # Handing out

    @property
    def is_empty(self) -> bool:
        return self._handed >= len(self._batch)

    def put(self, batch: list[Message]) -> None:
        """The next batch, when all of the last was handled."""
        assert self.is_empty, "messages would be lost"
        self.settle()
        self._batch = batch
        self._settled = self._handled = self._handed = 0

    def take(self, limit: int) -> list[Message]:
        """The next messages; all that was handed out before counts as handled."""
        self._handled = self._handed
        taken = self._batch[self._handed : self._handed + limit]
        self._handed += len(taken)
        return taken

    def take_one(self) -> Message | None:
        """The next message, if there is one: then the one before counts as handled."""
        handed = self._handed
        if handed >= len(self._batch):
            return None
        self._handled = handed
        self._handed = handed + 1
        return self._batch[handed]

    # Offsets

    def all_is_handled(self) -> None:
        self._handled = self._handed

    def settle(self) -> None:
        """Work out the offsets of what was handled.

        A batch that is done is let go at once, so that the next one comes to lie where the
        processor's cache still has this one.
        """
        if self._settled < self._handled:
            handled = self._batch[self._settled : self._handled]
            positions = self.positions_after(handled)
            if positions.keys() - self.begun.keys():
                self._note_beginnings(handled)
            self.uncommitted.update(positions)
            self.read.update(positions)
            self._settled = self._handled
            if self._settled == len(self._batch):
                self._batch = []
                self._settled = self._handled = self._handed = 0

    def positions_after(self, messages: list[Message]) -> dict[Partition, int]:
        """The next offset of each partition that these are of."""
        return positions_after(messages, is_one_topic=len(self.topics) == 1)

    def _note_beginnings(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.begun.setdefault((message.topic, message.partition), message.offset)

    def positions(self) -> dict[Partition, int]:
        """The next offset of each partition that was read, by what was handed out."""
        return {**self.read, **self.positions_after(self._batch[self._settled : self._handed])}

    # Changes of place

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Forget these partitions: what waits is not handed out, and nothing is committed."""
        gone = set(partitions)
        self.settle()
        self.take_back_waiting(gone)
        handled, handed = self._batch[: self._handled], self._batch[self._handled :]
        waiting = handed[self._handed - self._handled :]
        in_hand = [
            message
            for message in handed[: self._handed - self._handled]
            if (message.topic, message.partition) not in gone
        ]
        self._batch = handled + in_hand + waiting
        self._handed = self._handled + len(in_hand)
        for partition in gone:
            self.read.pop(partition, None)
            self.uncommitted.pop(partition, None)
            self.begun.pop(partition, None)

    def take_back_waiting(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Do not hand out what waits of these; returns where to read it again."""
        gone = set(partitions)
        first_waiting: dict[Partition, int] = {}
        kept = self._batch[: self._handed]
        for message in self._batch[self._handed :]:
            partition = (message.topic, message.partition)
            if partition in gone:
                first_waiting.setdefault(partition, message.offset)
            else:
                kept.append(message)
        self._batch = kept
        return first_waiting
