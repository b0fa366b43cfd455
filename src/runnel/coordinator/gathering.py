"""What one turn of the event loop brings for one shard, written to its journal as one batch.

A commit is small, and what it costs is mostly the way to the file. So those of many connections are
gathered and written together. The rules of `runtime.py` hold for all of them as for one:

  - what is gathered has been decided, and nothing else has happened yet;
  - whoever else looks into the shard, or whatever time brings about in it, comes after
    `Shard.write_gathered`, and so finds it written or refused;
  - if the journal refuses, nothing has changed, and all who gathered are told the same error.
"""

from collections.abc import Callable
from typing import Any, Final

from runnel.errors import ErrorCode, RunnelError

BATCH_BYTES_MAX: Final = 128 * 1024  # far below what any journal takes at once
RECORD_BYTES: Final = 32  # at most, of a record in its batch beside its key and value

Pair = tuple[bytes, bytes | None]


class Gathered:
    """One batch to be. Its shard has it until it is over; whoever is to be told keeps it longer."""

    __slots__ = ("_write", "code", "is_over", "pairs", "promises", "records", "size_bytes")

    def __init__(self, write: Callable[[list[Pair], list[Any]], None]) -> None:
        self._write = write  # and replay
        self.pairs: list[Pair] = []
        self.records: list[Any] = []  # the same, as they are replayed
        self.size_bytes = 0
        self.is_over = False
        self.code = ErrorCode.NONE  # once it is over: what all of them are told
        self.promises: list[Any] = []  # who is to be told; whoever does that knows what they are

    def has_room_for(self, size_bytes: int) -> bool:
        return self.size_bytes + size_bytes <= BATCH_BYTES_MAX

    def write(self) -> None:
        try:
            self._write(self.pairs, self.records)
        except RunnelError as error:
            self.code = error.code
        self.is_over = True

    def refuse(self, code: ErrorCode) -> None:
        self.code = code
        self.is_over = True
