"""kcat as a driver: `python -m tests.compat.librdkafka.kcat_driver HOST:PORT`.

Each call is one run of the program, and so is each member of a group. kcat has no administration:
the runner prepares its topics with another client. Its input is text, a line per record, all with
the same headers.
"""

import json
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from tests.compat.checks import PATIENCE_S
from tests.compat.librdkafka.kcat_groups import Groups, as_found
from tests.compat.serve import (
    Found,
    Line,
    UnsupportedError,
    decode,
    decoded_headers,
    serve,
)

KEY_DELIMITER = "\t"
NO_ADMIN = "kcat produces, consumes and lists; it has no administration"
LINE_BYTES_MAX = 100_000  # beyond this a record is sent as a file of its own


class Client(Groups):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._place: list[str] = []
        self._next = ""

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        raise UnsupportedError(NO_ADMIN)

    def describe(self, topic: str) -> dict[str, str]:
        raise UnsupportedError(NO_ADMIN)

    def alter(self, topic: str, config: dict[str, str]) -> None:
        raise UnsupportedError(NO_ADMIN)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        raise UnsupportedError(NO_ADMIN)

    def add_partitions(self, topic: str, total: int) -> None:
        raise UnsupportedError(NO_ADMIN)

    def delete(self, topic: str) -> None:
        raise UnsupportedError(NO_ADMIN)

    def partitions(self, topic: str) -> int:
        topics = json.loads(self._kcat(["-L", "-J"]))["topics"]
        return sum(len(row["partitions"]) for row in topics if row["topic"] == topic)

    def produce(self, topic: str, partition: int, codec: str, records: list[Line]) -> None:
        """One run per group of records with the same headers; kcat does not tell offsets."""
        place = ["-P", "-t", topic, "-p", str(partition), "-z", codec, "-T"]
        for headers, group in groupby(records, key=decoded_headers):
            flags = ["-X", "message.max.bytes=2000000", "-Z"]  # -Z: what is empty is null
            for name, value in headers:
                flags += ["-H", name if value is None else f"{name}={value.decode()}"]
            rows = [(decode(row["key"]) or b"", decode(row["value"]) or b"") for row in group]
            if any(len(value) > LINE_BYTES_MAX for _, value in rows):
                self._produce_file([*place, *flags], rows)
            else:
                lines = b"\n".join(key + KEY_DELIMITER.encode() + value for key, value in rows)
                self._kcat([*place, *flags, "-K", KEY_DELIMITER], lines + b"\n")

    def _produce_file(self, arguments: list[str], rows: list[tuple[bytes, bytes]]) -> None:
        """A file is one record; its key is an option."""
        for key, value in rows:
            with tempfile.NamedTemporaryFile() as file:
                Path(file.name).write_bytes(value)
                self._kcat([*arguments, "-k", key.decode(), file.name])

    def open(self, topic: str, partition: int, start: str, at: int) -> None:
        """The place of the next run; `latest` is resolved now, as a reader would."""
        self._place = ["-C", "-t", topic, "-p", str(partition), "-e", "-q", "-J"]
        self._next = {"earliest": "beginning", "timestamp": f"s@{at}"}.get(start, str(at))
        if start == "latest":
            end = self._kcat(["-Q", "-t", f"{topic}:{partition}:-1"])
            match = re.search(r"offset (\d+)", end)
            assert match is not None, end
            self._next = match[1]

    def take(self, count: int, timeout_ms: int) -> list[Found]:
        lines = self._kcat([*self._place, "-o", self._next, "-c", str(count)]).splitlines()
        read = [as_found(json.loads(line)) for line in lines]
        if read:
            self._next = str(read[-1]["offset"] + 1)
        return read

    def close(self) -> None:
        """Nothing is open between two runs."""

    def _kcat(self, arguments: list[str], text: bytes = b"") -> str:
        command = ["kcat", "-b", self._bootstrap, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise OSError(f"{' '.join(command)}: {done.stderr.decode()}"[:300])
        return "" if "-P" in arguments else done.stdout.decode()


if __name__ == "__main__":
    printed = subprocess.run(["kcat", "-V"], capture_output=True, text=True).stdout
    version = re.search(r"Version (\S+) .*librdkafka (\S+)", printed)
    serve(
        Client(sys.argv[1]),
        f"{version[1]} on librdkafka {version[2]}" if version else "unknown",
        ["timestamps", "binary", "empty values", "null headers"],
    )
