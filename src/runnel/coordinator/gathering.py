"""What one turn of the event loop brings for one shard, written to its journal as one batch.

A commit is small, and what it costs is mostly the way to the file. So those of many connections are
gathered and written together. The rules of `runtime.py` hold for all of them as for one:

  - what is gathered has been decided, and nothing else has happened yet;
  - whoever else looks into the shard, or whatever time brings about in it, comes after
    `Shard.write_gathered`, and so finds it written or refused;
  - if the journal refuses, nothing has changed, and all who gathered are told the same error;
    nobody else hears of it, whatever went wrong.
"""

from collections.abc import Callable
from typing import Any, Final

from runnel.errors import ErrorCode, RunnelError
from runnel.wire.batch import HEADER_SIZE

BATCH_BYTES_MAX: Final = 128 * 1024  # or less, if the journal does not take so much at once
RECORD_BYTES: Final = 32  # at most, of a record in its batch beside its key and value

Pair = tuple[bytes, bytes | None]


class Gathered:
    """One batch to be. Its shard has it until it is over; whoever is to be told keeps it longer."""

    __slots__ = (
        "_bytes_max",
        "_write",
        "bug",
        "code",
        "is_over",
        "pairs",
        "promises",
        "records",
        "size_bytes",
    )

    def __init__(
        self, write: Callable[[list[Pair], list[Any]], None], journal_bytes_max: int
    ) -> None:
        self._write = write  # and replay
        self._bytes_max = min(BATCH_BYTES_MAX, journal_bytes_max - HEADER_SIZE)
        self.pairs: list[Pair] = []
        self.records: list[Any] = []  # the same, as they are replayed
        self.size_bytes = 0
        self.is_over = False
        self.code = ErrorCode.NONE  # once it is over: what all of them are told
        self.bug: Exception | None = None  # of ours; whoever tells them makes it known
        self.promises: list[Any] = []  # who is to be told; whoever does that knows what they are

    def has_room_for(self, size_bytes: int) -> bool:
        return self.size_bytes + size_bytes <= self._bytes_max

    def write(self) -> None:
        """Never raises: who has it written may be somebody who came for something else."""
        try:
            self._write(self.pairs, self.records)
        except RunnelError as error:
            self.code = error.code
        except Exception as error:  # noqa: BLE001  # none of them may be told that it was written
            self.code, self.bug = ErrorCode.UNKNOWN_SERVER_ERROR, error
        self.is_over = True

    def refuse(self, code: ErrorCode) -> None:
        self.code = code
        self.is_over = True
