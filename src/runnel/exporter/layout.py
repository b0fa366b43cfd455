"""Where each number lies in the file that a broker and its exporter both map.

64-bit words in the machine's own order: single numbers (`Slot`), histograms, counts by error code,
a few facts as text, then tables of rows. A single number is written with one store and is never
torn. A row is: its sequence number is odd while it is written, so whoever reads compares it before
and after. Sequence numbers lie apart from the rows, so that a table is read with three copies.

Names (of topics, groups, folders) are rows of their own, and other rows know them by a number that
is never given twice: a row that outlives its name finds no other in its place.
"""

from enum import IntEnum
from typing import Final, NamedTuple

MAGIC: Final = 0x52554E4E454C0001  # "RUNNEL", and the version of this layout
WORD_BYTES: Final = 8


class Slot(IntEnum):
    """One number each."""

    MAGIC = 0
    STATE = 1  # of `State`
    HEARTBEAT_MS = 2  # CLOCK_BOOTTIME, when the loop was last seen to run
    STARTED_MS = 3  # on the wall clock
    CONNECTIONS_ACCEPTED = 4
    CONNECTIONS_CLOSED = 5
    CONNECTIONS_REFUSED = 6
    CONNECTIONS_THROTTLED = 7
    REQUESTS_MALFORMED = 8
    REQUESTS_FAILED = 9
    REQUESTS_THROTTLED = 10
    REQUESTS_PARKED_NOW = 11
    PRODUCED_BATCHES = 12
    PRODUCED_RECORDS = 13
    PRODUCED_BYTES = 14
    FETCHED_BYTES = 15
    FETCHES_PARKED = 16
    SLICES_WARMED = 17
    FLUSHES = 18
    FLUSHES_FAILED = 19
    LOOP_LAG_MS_MAX = 20
    CLEANER_RUNS = 21
    CLEANER_READ_BYTES = 22
    CLEANER_WRITTEN_BYTES = 23
    CLEANER_DIRTY_PERCENT_MAX = 24
    CLEANER_LAST_LOOK_MS = 25
    CLEANER_UNCLEANABLE = 26
    RETENTION_DELETED_SEGMENTS = 27
    RETENTION_DELETED_BYTES = 28
    TRANSACTION_OLDEST_START_MS = 29  # on the wall clock, 0: none is open
    TRANSACTIONS = 32  # eight of them, by the number of the state
    FACTS_BYTES = 40
    # How many rows of each table are or were in use, and how many had no place.
    NAMES_USED = 41
    PARTITIONS_USED = 42
    GROUPS_USED = 43
    OFFSETS_USED = 44
    DIRS_USED = 45
    PARTITIONS_LEFT_OUT = 46
    GROUPS_LEFT_OUT = 47
    OFFSETS_LEFT_OUT = 48


class State(IntEnum):
    """Of the broker, in `Slot.STATE`."""

    STARTING = 0
    READY = 1
    STOPPING = 2


SLOT_COUNT: Final = 128

# A histogram: how many fell into each bucket, then the sum in microseconds. Bucket n holds what is
# below 2**(n + 4) us and not in an earlier one, the last one all the rest.
SMALLEST_BITS: Final = 4
BUCKET_COUNT: Final = 23
SUM: Final = BUCKET_COUNT
HISTOGRAM_WORDS: Final = BUCKET_COUNT + 1
API_COUNT: Final = 128  # keys of Kafka's APIs are below

LOOP_LAG: Final = SLOT_COUNT
FLUSH_TIME: Final = LOOP_LAG + HISTOGRAM_WORDS
REQUEST_TIMES: Final = FLUSH_TIME + HISTOGRAM_WORDS  # one for each API
ERRORS: Final = REQUEST_TIMES + API_COUNT * HISTOGRAM_WORDS  # by code, which begin at -1
ERROR_COUNT: Final = 256
PLAIN_WORDS: Final = ERRORS + ERROR_COUNT  # what there is without rows
PLAIN_BYTES: Final = PLAIN_WORDS * WORD_BYTES

# Lines of `kind TAB key TAB text`, written before the exporter starts.
FACTS_AT: Final = PLAIN_BYTES
FACTS_BYTES_MAX: Final = 32 * 1024

TRANSACTION_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence"),
)
GROUP_STATES: Final = (
    *("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Assigning"),
    "Reconciling",
)
GROUP_PROTOCOLS: Final = ("classic", "consumer")
NAME_BYTES_MAX: Final = 256


class Table(NamedTuple):
    """Rows of a fixed size; `at` is the byte where their sequence numbers begin."""

    at: int
    row_count_max: int
    row_words: int
    used: Slot

    @property
    def rows_at(self) -> int:
        return self.at + self.row_count_max * WORD_BYTES

    @property
    def row_bytes(self) -> int:
        return self.row_words * WORD_BYTES

    @property
    def end(self) -> int:
        return self.rows_at + self.row_count_max * self.row_bytes


class PartitionRow(NamedTuple):
    """A topic of 0 is no topic: the row is free. -1 in an offset or time is not known."""

    topic: int
    partition: int
    is_leader: int
    is_offline: int
    dir: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    size_bytes: int
    segment_count: int
    oldest_ms: int


class GroupRow(NamedTuple):
    group: int
    protocol: int  # in GROUP_PROTOCOLS
    state: int  # in GROUP_STATES
    member_count: int
    epoch: int  # or generation: grows with each rebalance


class OffsetRow(NamedTuple):
    group: int
    topic: int
    partition: int
    offset: int


class DirRow(NamedTuple):
    dir: int
    total_bytes: int  # -1: the folder is offline
    free_bytes: int


# A name's row: its number, its length in bytes, its bytes. Pages that are never written take no
# memory, so there is room for more than one broker should hold.
NAMES: Final = Table(
    FACTS_AT + FACTS_BYTES_MAX, 60_000, 2 + NAME_BYTES_MAX // WORD_BYTES, Slot.NAMES_USED
)
PARTITIONS: Final = Table(NAMES.end, 50_000, len(PartitionRow._fields), Slot.PARTITIONS_USED)
GROUPS: Final = Table(PARTITIONS.end, 10_000, len(GroupRow._fields), Slot.GROUPS_USED)
OFFSETS: Final = Table(GROUPS.end, 100_000, len(OffsetRow._fields), Slot.OFFSETS_USED)
DIRS: Final = Table(OFFSETS.end, 64, len(DirRow._fields), Slot.DIRS_USED)
FILE_BYTES: Final = DIRS.end


def bound_s(bucket: int) -> float:
    """Up to which a bucket counts, in seconds."""
    return float(1 << bucket + SMALLEST_BITS) / 1e6
