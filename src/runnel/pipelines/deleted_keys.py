"""Which keys were deleted, and when, so that an older change that comes again does not revive one.

A file of lines among the pipeline's notes, written before the table is changed. What is older than
its time, and what is too much, is forgotten when the file is next read.
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from runnel.pipelines.changes import DELETE, UPSERT, Change, Order

NOTE: Final = "deleted.jsonl"
KEYS_MAX: Final = 1_000_000


class DeletedKeys:
    def __init__(self, folder: Path, remember_ms: int, keys_max: int = KEYS_MAX) -> None:
        self._file = folder / NOTE
        self._remember_ms = remember_ms
        self._keys_max = keys_max
        self._deleted: dict[str, tuple[Order, int]] = {}
        self._lines = 0
        self._load()

    def __len__(self) -> int:
        return len(self._deleted)

    def note(self, changes: Iterable[Change]) -> None:
        """The deletes among them, on disk when this returns."""
        now_ms = int(time.time() * 1000)
        found = {
            c.key: (c.order, now_ms) for c in changes if c.op == DELETE and not self._is_told(c)
        }
        if not found:
            return
        self._deleted |= found
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(_line(key, *told) for key, told in found.items())
            file.flush()
            os.fsync(file.fileno())
        self._lines += len(found)
        if self._lines > 2 * self._keys_max:
            self._rewrite()

    def is_older(self, change: Change) -> bool:
        """Whether the key was deleted after this change of it.

        By the offset too: sources without a time or a position have nothing else, and a row that is
        created again comes after its delete. A batch that is repeated has the offsets that it had.
        """
        told = self._deleted.get(change.key)
        return change.op == UPSERT and told is not None and change.order < told[0]

    def _is_told(self, change: Change) -> bool:
        """Whether this delete, or a later one, is known: an old one that comes again is no news."""
        told = self._deleted.get(change.key)
        return told is not None and change.order < told[0]

    def _load(self) -> None:
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return
        self._lines = len(lines)
        for line in lines:
            try:
                key, ts_ms, position, offset, at_ms = json.loads(line)
            except ValueError:  # the last one, cut short by a kill: its batch is done again
                continue
            self._deleted[key] = (Order(ts_ms, position, offset), at_ms)
        if self._lines > self._keys_max:
            self._rewrite()

    def _rewrite(self) -> None:
        least_ms = int(time.time() * 1000) - self._remember_ms
        kept = [(key, told) for key, told in self._deleted.items() if told[1] >= least_ms]
        self._deleted = dict(kept[-self._keys_max :])
        part = self._file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            file.writelines(_line(key, *told) for key, told in self._deleted.items())
        part.replace(self._file)
        self._lines = len(self._deleted)


def _line(key: str, order: Order, at_ms: int) -> str:
    return json.dumps([key, *order, at_ms]) + "\n"
