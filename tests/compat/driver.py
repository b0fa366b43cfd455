"""One client under test: a small program in the client's own language, told what to do by lines.

A request is one line of JSON, `{"do": "produce", "topic": ...}`, on the program's standard input;
the answer is one line on its standard output: `{"ok": ...}`, `{"error": why}`, or
`{"unsupported": why}` where the client has no such call. The first line of all is the program's
greeting: its version, and what its records cannot carry. So every client is put through the same
operations, and judged by the same assertions, of `operations.py`.
"""

import base64
import contextlib
import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

START_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 45.0
END_TIMEOUT_S = 10.0


class DriverError(Exception):
    """The client failed at what it was asked, or its program ended or fell silent."""


class UnsupportedError(Exception):
    """The client has no such call; the message says what it has instead."""


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Driver:
    """Owns the program; use it as a context manager."""

    def __init__(self, command: Sequence[str], bootstrap: str, folder: Path) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by _end
        self._process = subprocess.Popen(
            [*command, bootstrap],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.version = ""
        self.is_lost = False  # ended, or fell silent, so that its next answer is to an old question
        self._lacks: list[str] = []

    def __enter__(self) -> Self:
        try:
            greeting = self._next(START_TIMEOUT_S)
        except DriverError:
            self._end()
            raise
        self.version = str(greeting["version"])
        self._lacks = list(greeting["lacks"])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def lacks(self, ability: str) -> bool:
        """Whether its records cannot carry this: `timestamps`, `null headers`, and so on."""
        return ability in self._lacks

    def create(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        self.call("create", topic=topic, partitions=partitions, config=dict(config))

    def describe(self, topic: str) -> dict[str, str]:
        """The topic's whole configuration, defaults among it."""
        found: dict[str, str] = self.call("describe", topic=topic)
        return found

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        self.call("alter", topic=topic, config=dict(config))

    def partitions(self, topic: str) -> int:
        """How many the topic has; 0 if there is no such topic."""
        return int(self.call("partitions", topic=topic))

    def produce(
        self, topic: str, partition: int, codec: str, records: Sequence[Record]
    ) -> list[int] | None:
        """The offsets that were acknowledged; None from a client that does not tell them."""
        lines = [to_json(record) for record in records]
        offsets: list[int] | None = self.call(
            "produce", topic=topic, partition=partition, codec=codec, records=lines
        )
        return offsets

    def open(self, topic: str, partition: int, start: str, at: int = 0) -> None:
        """Start is `earliest`, `latest`, `offset` or `timestamp`; the last two with their number.

        One reader is open at a time.
        """
        self.call("open", topic=topic, partition=partition, start=start, at=at)

    def take(self, count: int, timeout_s: float) -> list[tuple[int, Record]]:
        """The next records and their offsets: at least `count`, unless the time is over."""
        found = self.call("take", count=count, timeout_ms=int(timeout_s * 1_000))
        return [(int(line["offset"]), from_json(line)) for line in found]

    def close(self) -> None:
        self.call("close")

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.call("delete_records", topic=topic, partition=partition, before=before)

    def add_partitions(self, topic: str, total: int) -> None:
        self.call("add_partitions", topic=topic, total=total)

    def delete(self, topic: str) -> None:
        self.call("delete", topic=topic)

    def call(self, do: str, **request: object) -> Any:  # noqa: ANN401  # each call has its own answer
        """One line asked and answered; the calls of groups are in `group_calls.py`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.is_lost = True
            raise DriverError(f"{do}: the program has ended: {self._printed()}") from None
        answer = self._next(CALL_TIMEOUT_S)
        if "unsupported" in answer:
            raise UnsupportedError(answer["unsupported"])
        if "error" in answer:
            raise DriverError(f"{do}: {answer['error']}")
        return answer["ok"]

    def _next(self, timeout_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self.is_lost = True
            raise DriverError(f"no answer within {timeout_s:.0f} s: {self._printed()}") from None
        if not line:
            self.is_lost = True
            raise DriverError(f"the program has ended: {self._printed()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):  # some clients log to standard output
                self._lines.put(line)
        self._lines.put(b"")

    def _printed(self) -> str:
        self._output.seek(0)
        return " ".join(self._output.read().decode(errors="replace").split())[-300:]

    def _end(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._output.close()


def to_json(record: Record) -> dict[str, object]:
    return {
        "key": _text(record.key),
        "value": _text(record.value),
        "timestamp": record.timestamp_ms,
        "headers": [[name, _text(value)] for name, value in record.headers],
    }


def from_json(line: Mapping[str, Any]) -> Record:
    headers = tuple((str(name), _bytes(value)) for name, value in line["headers"])
    return Record(_bytes(line["key"]), _bytes(line["value"]), int(line["timestamp"]), headers)


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
