"""Counters as preallocated slots: an increment is one subscript, and a scrape asks nobody.

The slots are a plain list, because that is what Python changes fastest; `publish` copies them into
the file that the exporter maps (`exporter/layout.py` says what lies where), as far as they changed:
of some four thousand numbers that is a few dozen, and to make machine words of all of them was a
quarter of what a broker without clients does. A test, the simulator and a broker without an
exporter have no such file.
"""

from array import array
from mmap import mmap
from typing import Final

from runnel.exporter.layout import (
    BUCKET_COUNT,
    ERROR_COUNT,
    ERRORS,
    MAGIC,
    PLAIN_BYTES,
    PLAIN_WORDS,
    SMALLEST_BITS,
    SUM,
)
from runnel.exporter.layout import Slot as Slot

# The hot ones as plain integers: an enum member as an index costs a method call.
PRODUCED_BATCHES: Final = int(Slot.PRODUCED_BATCHES)
PRODUCED_RECORDS: Final = int(Slot.PRODUCED_RECORDS)
PRODUCED_BYTES: Final = int(Slot.PRODUCED_BYTES)
FETCHED_BYTES: Final = int(Slot.FETCHED_BYTES)
FETCHES_PARKED: Final = int(Slot.FETCHES_PARKED)
_LAST_BUCKET: Final = BUCKET_COUNT - 1
RUN_WORDS: Final = 64  # they are published together


class Metrics:
    """Owned by the broker, touched on its loop alone. `shared` is of `layout.FILE_BYTES`."""

    __slots__ = ("_published", "_told", "shared", "slots")

    def __init__(self, shared: mmap | bytearray | None = None) -> None:
        self.shared = shared
        self._published: memoryview | None = None
        if shared is not None:
            self._published = memoryview(shared)[:PLAIN_BYTES].cast("q")
        self.slots: list[int] = [0] * PLAIN_WORDS
        self.slots[Slot.MAGIC] = MAGIC
        self._told: list[list[int]] = [[] for _ in range(0, PLAIN_WORDS, RUN_WORDS)]  # by run

    def publish(self) -> None:
        """Let the exporter see everything as it is now."""
        published, told = self._published, self._told
        if published is None:
            return
        for run in range(len(told)):
            start = run * RUN_WORDS
            words = self.slots[start : start + RUN_WORDS]
            if words != told[run]:
                published[start : start + len(words)] = memoryview(array("q", words))
                told[run] = words

    def add(self, slot: Slot, amount: int = 1) -> None:
        self.slots[slot] += amount

    def observe_us(self, histogram: int, took_us: int) -> None:
        """`histogram` is where its buckets begin."""
        slots = self.slots
        bucket = (took_us >> SMALLEST_BITS).bit_length()
        slots[histogram + (bucket if bucket < _LAST_BUCKET else _LAST_BUCKET)] += 1
        slots[histogram + SUM] += took_us

    def add_error(self, code: int) -> None:
        """An answer, or a part of it, said so."""
        if -1 <= code < ERROR_COUNT - 1:
            self.slots[ERRORS + 1 + code] += 1
