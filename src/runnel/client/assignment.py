"""Which partitions a consumer reads, and how far librdkafka is with each of them.

librdkafka loses a seek that comes while it looks up where a partition starts (its first or its last
offset): the answer is out of date then, so it looks up once more and reads from there. Nor does it
seek a partition that it was given just now. So it is asked only for partitions that have begun:

    waiting -> beginning -> begun
                   |  ^
                   v  |
                  halted

*Waiting* are those that it was not given yet: a seek is where they start. Once given they are
*beginning*, until a first message or an end came: a seek is put off until then. A *halted* one had
no offset to start from, and is given anew by a seek.

Not covered: a partition that is forgotten while it begins and added again soon. The old answer
makes librdkafka start a timer that no seek stops, and it looks up once more when that ends.
"""

from collections.abc import Iterable

from runnel.client.offsets import Partition


class Assignment:
    """Of one consumer. It only keeps the books; `Assigning` talks to librdkafka."""

    def __init__(self) -> None:
        self.partitions: dict[Partition, None] = {}  # in the order in which they came
        self.waiting: dict[Partition, None] = {}
        self.beginning: set[Partition] = set()
        self.halted: set[Partition] = set()
        self.ends: dict[Partition, int] = {}  # where librdkafka has come to the end
        self._sought: dict[Partition, int] = {}  # of those that have not begun, assigned or not

    @property
    def has_begun(self) -> bool:
        """Whether a first answer came of one: a message, or the end."""
        return bool(self.partitions.keys() - self.waiting.keys() - self.beginning)

    def add(self, partitions: Iterable[Partition]) -> None:
        fresh = dict.fromkeys(one for one in partitions if one not in self.partitions)
        self.partitions.update(fresh)
        self.waiting.update(fresh)

    def hand_over(self) -> dict[Partition, int | None]:
        """Those that wait, to be given to librdkafka: each with where it was sought, if it was."""
        waiting, self.waiting = self.waiting, {}
        self.beginning |= waiting.keys()
        return {one: self._sought.pop(one, None) for one in waiting}

    def put_off(self, partition: Partition, offset: int) -> bool:
        """Whether a seek is for later, and noted; otherwise it can be done now."""
        is_later = (
            partition not in self.partitions
            or partition in self.waiting
            or partition in self.beginning
        )
        if is_later:
            self._sought[partition] = offset
        return is_later

    def begin(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Something came of these: what is to be sought now, as it was put off."""
        begun = self.beginning.intersection(partitions)
        self.beginning -= begun
        return {one: self._sought.pop(one) for one in begun if one in self._sought}

    def begin_again(self, partitions: Iterable[Partition]) -> None:
        """They were given to librdkafka anew."""
        self.halted.difference_update(partitions)
        self.beginning.update(partitions)

    def forget(self, partitions: Iterable[Partition]) -> None:
        for one in partitions:
            self.partitions.pop(one, None)
            self.waiting.pop(one, None)
            self.beginning.discard(one)
            self.ends.pop(one, None)
            self._sought.pop(one, None)
            self.halted.discard(one)
