"""kcat's groups, for its driver; the calls are in `group_calls.py`.

A member is a running kcat: what it reads and what it is assigned are lines that it prints. It
commits by itself, and at the latest when it ends.
"""

import json
import queue
import re
import signal
import subprocess
import threading
import time
from typing import IO, Any

from tests.compat.checks import PATIENCE_S
from tests.compat.serve import (
    CommittedLine,
    Found,
    GroupLine,
    Line,
    PolledLine,
    UnsupportedError,
    found,
)

NO_GROUP_ADMIN = "kcat joins groups; it cannot administer them"
NO_ABORT = "kcat's transaction is its whole input, and it never aborts one"


class Member:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        options = ["-u", "-J", "-X", "auto.offset.reset=earliest", "-m", "20"]
        self._process = subprocess.Popen(
            ["kcat", "-b", bootstrap, "-G", group, *options, topic],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._read: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.assigned: list[int] = []
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._threads = [
            threading.Thread(target=self._records, args=[self._process.stdout], daemon=True),
            threading.Thread(target=self._rebalances, args=[self._process.stderr], daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _records(self, output: IO[str]) -> None:
        for line in output:
            self._read.put(line)

    def _rebalances(self, output: IO[str]) -> None:
        for line in output:
            if match := re.search(r" rebalanced \(.*\): (assigned|revoked): (.*)", line):
                owned = match[2] if match[1] == "assigned" else ""
                self.assigned = [int(partition) for partition in re.findall(r"\[(\d+)\]", owned)]

    def poll(self, timeout_ms: int) -> list[PolledLine]:
        deadline = time.monotonic() + timeout_ms / 1_000
        read: list[PolledLine] = []
        while True:
            try:
                left_s = 0.01 if read else max(0.0, deadline - time.monotonic())
                line = json.loads(self._read.get(timeout=left_s))
            except queue.Empty:
                return read
            read.append({**as_found(line), "partition": line["partition"]})

    def end(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join()


class Groups:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._members: dict[str, Member] = {}

    def join(self, member: str, group: str, topic: str, protocol: str) -> None:
        if protocol != "classic":
            raise UnsupportedError("its librdkafka is older than the protocol")
        self._members[member] = Member(self._bootstrap, group, topic)

    def poll(self, member: str, timeout_ms: int) -> list[PolledLine]:
        return self._members[member].poll(timeout_ms)

    def assigned(self, member: str) -> list[int]:
        return self._members[member].assigned

    def commit(self, member: str) -> None:
        """Nothing to be done: see above."""

    def leave(self, member: str) -> None:
        self._members.pop(member).end()

    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, metadata: str
    ) -> None:
        raise UnsupportedError(NO_GROUP_ADMIN)

    def committed(self, group: str, topic: str, partition: int) -> CommittedLine | None:
        raise UnsupportedError(NO_GROUP_ADMIN)

    def list_groups(self) -> list[str]:
        raise UnsupportedError(NO_GROUP_ADMIN)

    def describe_group(self, group: str) -> GroupLine:
        raise UnsupportedError(NO_GROUP_ADMIN)

    def delete_group(self, group: str) -> None:
        raise UnsupportedError(NO_GROUP_ADMIN)

    def transaction(
        self, transactional_id: str, topic: str, records: list[Line], commit: bool
    ) -> None:
        raise UnsupportedError(NO_ABORT)

    def copy(
        self, transactional_id: str, group: str, topic: str, target: str, count: int, commit: bool
    ) -> None:
        raise UnsupportedError(NO_ABORT)


def as_found(line: dict[str, Any]) -> Found:
    """A record as kcat prints it with -J."""
    names, values = line.get("headers", [])[::2], line.get("headers", [])[1::2]
    headers = [(name, _utf8(value)) for name, value in zip(names, values, strict=True)]
    return found(line["offset"], _utf8(line["key"]), _utf8(line["payload"]), line["ts"], headers)


def _utf8(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
