"""The loop of a driver in Python: a line of JSON in, a method called, a line of JSON out.

Only the standard library is imported, because each client has an environment of its own. The
lines are described in `driver.py`.
"""

import base64
import json
import sys
from collections.abc import Sequence
from typing import Protocol, TypedDict


class Line(TypedDict):
    """A record; bytes are in base64."""

    key: str | None
    value: str | None
    timestamp: int
    headers: list[tuple[str, str | None]]


class Found(Line):
    offset: int


class PolledLine(Found):
    partition: int


class CommittedLine(TypedDict):
    offset: int
    metadata: str | None


class GroupLine(TypedDict):
    state: str  # as Kafka names it, in lower case
    members: int


COPIED = b"copy of "  # what a transactional copy puts before each value


class UnsupportedError(Exception):
    """The client has no such call."""


class Client(Protocol):
    """A client under test; see `Driver` and `GroupCalls` for the meaning of each call."""

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None: ...
    def describe(self, topic: str) -> dict[str, str]: ...
    def alter(self, topic: str, config: dict[str, str]) -> None: ...
    def partitions(self, topic: str) -> int: ...
    def produce(
        self, topic: str, partition: int, codec: str, records: list[Line]
    ) -> list[int] | None: ...
    def open(self, topic: str, partition: int, start: str, at: int) -> None: ...
    def take(self, count: int, timeout_ms: int) -> list[Found]: ...
    def close(self) -> None: ...
    def delete_records(self, topic: str, partition: int, before: int) -> None: ...
    def add_partitions(self, topic: str, total: int) -> None: ...
    def delete(self, topic: str) -> None: ...
    def join(self, member: str, group: str, topic: str, protocol: str) -> None: ...
    def poll(self, member: str, timeout_ms: int) -> list[PolledLine]: ...
    def assigned(self, member: str) -> list[int]: ...
    def commit(self, member: str) -> None: ...
    def leave(self, member: str) -> None: ...
    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, metadata: str
    ) -> None: ...
    def committed(self, group: str, topic: str, partition: int) -> CommittedLine | None: ...
    def list_groups(self) -> list[str]: ...
    def describe_group(self, group: str) -> GroupLine: ...
    def delete_group(self, group: str) -> None: ...
    def transaction(
        self, transactional_id: str, topic: str, records: list[Line], commit: bool
    ) -> None: ...
    def copy(
        self, transactional_id: str, group: str, topic: str, target: str, count: int, commit: bool
    ) -> None: ...


def encode(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def found(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    timestamp: int,
    headers: Sequence[tuple[str, bytes | None]],
) -> Found:
    return {
        "offset": offset,
        "key": encode(key),
        "value": encode(value),
        "timestamp": timestamp,
        "headers": [(name, encode(content)) for name, content in headers],
    }


def decoded_headers(line: Line) -> list[tuple[str, bytes | None]]:
    return [(name, decode(content)) for name, content in line["headers"]]


def serve(client: Client, version: str, lacks: Sequence[str] = ()) -> None:
    """Until standard input ends. Whatever a client raises is an answer, and the loop goes on."""
    _say({"version": version, "lacks": list(lacks)})
    for text in sys.stdin:
        request = json.loads(text)
        method = getattr(client, request.pop("do"))
        try:
            _say({"ok": method(**request)})
        except UnsupportedError as error:
            _say({"unsupported": str(error)})
        except Exception as error:  # noqa: BLE001  # each client raises its own, some raise any
            _say({"error": f"{type(error).__name__}: {error}"[:500]})


def _say(answer: object) -> None:
    print(json.dumps(answer), flush=True)
