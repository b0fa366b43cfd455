"""What the Python suites share: the records they send, and one printed line per check.

A line is `pass<TAB>what` or `fail<TAB>what<TAB>why`, as in the suites in other languages. Only the
standard library is imported, because each client has an environment of its own.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

# An hour ago: records older than the default retention could be deleted before they are read.
FIRST_TIMESTAMP_MS = time.time_ns() // 1_000_000 - 3_600_000
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
PATIENCE_S = 20.0
RUN = f"{time.time_ns():x}-{os.getpid()}"  # so that a suite can run again on the same broker


class Record(NamedTuple):
    """A record without its place, equal when every client must see it as equal."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


class Placed(NamedTuple):
    """A record with the place that an acknowledgement named, or where a reader found it."""

    partition: int
    offset: int
    record: Record


def make_record(index: int, *, null_header: bool = True) -> Record:
    """Timestamps are a millisecond apart, so that time and offset can be told from each other."""
    headers: list[tuple[str, bytes | None]] = [("index", str(index).encode())]
    if null_header:
        headers.append(("null", None))
    headers.append(("index", "again ✓".encode()))
    value = f"value {index} ".encode() * (1 + index % 40)
    return Record(f"key {index}".encode(), value, FIRST_TIMESTAMP_MS + index, tuple(headers))


def topic_name(client: str, purpose: str) -> str:
    return f"{client}-{purpose}-{RUN}"


def require_equal(sent: Sequence[Placed], read: Sequence[Placed]) -> None:
    """The same records at the same places, each once, in the order of offsets per partition."""
    wanted = {(placed.partition, placed.offset): placed.record for placed in sent}
    assert len(wanted) == len(sent), f"{len(sent)} records acknowledged at {len(wanted)} places"
    next_offset: dict[int, int] = {}
    for partition, offset, record in read:
        expected = next_offset.setdefault(partition, offset)
        assert offset == expected, f"partition {partition}: wanted offset {expected}, got {offset}"
        next_offset[partition] = offset + 1
        assert (partition, offset) in wanted, f"not sent: partition {partition} offset {offset}"
        sent_record = wanted.pop((partition, offset))
        assert record == sent_record, f"wanted {sent_record}, got {record}"
    assert not wanted, f"{len(wanted)} records not read"


def require_soon(holds: Callable[[], bool], why: str) -> None:
    """A controller answers before every broker knows, so what metadata shows may lag behind."""
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline, why
        time.sleep(0.02)


class Checks:
    """Runs the checks of one suite; `failures` are the exceptions that its client raises."""

    def __init__(self, failures: tuple[type[Exception], ...]) -> None:
        self._failures: tuple[type[Exception], ...] = (AssertionError, OSError, *failures)
        self._failed = 0

    def check(self, what: str, body: Callable[[], None]) -> None:
        try:
            body()
        except self._failures as error:
            self._failed += 1
            why = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"fail\t{what}\t{why[:300]}", flush=True)
        else:
            print(f"pass\t{what}", flush=True)

    def end(self) -> None:
        sys.exit(1 if self._failed else 0)
