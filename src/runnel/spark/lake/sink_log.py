"""`_spark_metadata`: the log in which Spark's file sink keeps the files that count.

An entry is a file of lines, made by one atomic act: `v1`, then a JSON object for each file. Every
tenth, called `9.compact`, `19.compact` and so on, repeats all before it, so a reader starts at the
last of those. To overwrite a table is to write the next of them with nothing repeated.

Entries are numbered on their own, not by batch: several queries may share a table.
"""

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from runnel.spark.lake.lake_options import TableError

EVERY: Final = 10
_COMPACT: Final = ".compact"
_VERSION: Final = "v1"
_KEPT: Final = 3 * EVERY  # entries before the last compacted one, for readers that are at it
_BLOCK_BYTES: Final = 32 << 20  # what Hadoop says of local files; nobody reads it


class SinkLog:
    """The log of one table; read anew at each call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def paths(self) -> list[str]:
        """Every file that counts, as an absolute path."""
        return [unquote(urlsplit(entry["path"]).path) for entry in self._entries()]

    def sizes(self) -> list[tuple[str, int]]:
        """The same with each one's bytes."""
        return [(unquote(urlsplit(entry["path"]).path), entry["size"]) for entry in self._entries()]

    def next_number(self) -> int:
        return max(self._numbers(), default=-1) + 1

    def add(self, number: int, files: Sequence[tuple[Path, int]], *, replace: bool) -> None:
        """Files and their sizes. Raises if somebody else has taken the number meanwhile."""
        now_ms = int(time.time() * 1000)
        entries = [_entry(path, size_bytes, now_ms) for path, size_bytes in files]
        if replace:
            number += EVERY - 1 - number % EVERY
        elif (number + 1) % EVERY == 0:
            entries = [*self._entries(), *entries]
        text = "\n".join([_VERSION, *(json.dumps(entry) for entry in entries)])
        self._make(self._path(number), text)
        self._forget(number)

    def _make(self, path: Path, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = self._folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)  # unlike a rename it fails if the entry is there
        except FileExistsError as error:
            raise TableError(
                f"{path} was just written by somebody else; is the same query running twice?"
            ) from error
        finally:
            beside.unlink(missing_ok=True)

    def _forget(self, number: int) -> None:
        """Old entries that a compacted one repeats; two compacted ones always stay."""
        if (number + 1) % EVERY == 0:
            for old in self._numbers():
                if old < number - _KEPT:
                    self._path(old).unlink(missing_ok=True)

    def _entries(self) -> list[dict[str, Any]]:
        last = max(self._numbers(), default=-1)
        first = max(0, (last + 1) // EVERY * EVERY - 1)
        return [entry for n in range(first, last + 1) for entry in self._read(n)]

    def _read(self, number: int) -> Iterator[dict[str, Any]]:
        path = self._path(number)
        try:
            version, *lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError as error:
            raise TableError(
                f"{path} is missing: the log of this table is not whole, and which files count"
                f" cannot be known. Restore it, or write to another folder"
            ) from error
        if version != _VERSION:
            raise TableError(f"{path} begins with {version[:20]}, not with {_VERSION}")
        yield from (json.loads(line) for line in lines)

    def _numbers(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        names = (entry.name.removesuffix(_COMPACT) for entry in self._folder.iterdir())
        return [int(name) for name in names if name.isdecimal()]

    def _path(self, number: int) -> Path:
        return self._folder / (f"{number}{_COMPACT}" if (number + 1) % EVERY == 0 else f"{number}")


def _entry(path: Path, size_bytes: int, now_ms: int) -> dict[str, Any]:
    return {
        "path": path.as_uri(),
        "size": size_bytes,
        "isDir": False,
        "modificationTime": now_ms,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "action": "add",
    }
