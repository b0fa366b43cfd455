"""Counters as preallocated slots: an increment is one subscript, and a scrape copies no objects.

The slots lie in one flat buffer of 64-bit integers, so that another process can map and read them.
"""

from enum import IntEnum
from typing import Final


class Slot(IntEnum):
    """One counter each. Append only: readers know slots by number."""

    CONNECTIONS_ACCEPTED = 0
    CONNECTIONS_CLOSED = 1
    CONNECTIONS_REFUSED = 2
    REQUESTS = 3
    REQUESTS_MALFORMED = 4
    REQUESTS_FAILED = 5
    PRODUCED_BATCHES = 6
    PRODUCED_BYTES = 7
    FETCHED_BYTES = 8
    FETCHES_PARKED = 9
    LOGS_OFFLINE = 10
    FLUSHES = 11
    LOOP_LAG_MS_MAX = 12
    SLICES_WARMED = 13
    REQUESTS_THROTTLED = 14
    CONNECTIONS_THROTTLED = 15
    CLEANER_RUNS = 16
    CLEANER_READ_BYTES = 17
    CLEANER_WRITTEN_BYTES = 18
    CLEANER_DIRTY_PERCENT_MAX = 19
    CLEANER_LAST_LOOK_MS = 20
    CLEANER_UNCLEANABLE = 21


# The hot ones as plain integers: an enum member as an index costs a method call.
REQUESTS: Final = int(Slot.REQUESTS)
PRODUCED_BATCHES: Final = int(Slot.PRODUCED_BATCHES)
PRODUCED_BYTES: Final = int(Slot.PRODUCED_BYTES)
FETCHED_BYTES: Final = int(Slot.FETCHED_BYTES)
FETCHES_PARKED: Final = int(Slot.FETCHES_PARKED)


class Metrics:
    __slots__ = ("slots",)

    def __init__(self, buffer: bytearray | None = None) -> None:
        self.slots = memoryview(buffer or bytearray(8 * len(Slot))).cast("q")

    def add(self, slot: Slot, amount: int = 1) -> None:
        self.slots[slot] += amount

    def read(self) -> dict[str, int]:
        return {slot.name.lower(): self.slots[slot] for slot in Slot}
