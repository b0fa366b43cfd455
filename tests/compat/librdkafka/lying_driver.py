"""confluent-kafka as a driver that lies: `... lying_driver LIE HOST:PORT`; see `LIES`.

What the matrix passes means something only if it fails such a client.
"""

import sys

from tests.compat.librdkafka.confluent_driver import Client
from tests.compat.serve import Found, Line, serve

# What it does wrong, and the operations that must notice.
LIES: dict[str, tuple[str, ...]] = {
    "create without partitions": ("create",),
    "create without config": ("create with config",),
    "describe from memory": ("describe config",),
    "alter nothing": ("alter config",),
    "send uncompressed": ("gzip", "zstd"),
    "wrong offsets": ("earliest",),
    "wrong values": ("none", "large"),
    "wrong headers": ("headers",),
    "wrong times": ("many",),
    "empty for null": ("nulls",),
    "start at the beginning": ("latest", "offset", "timestamp"),
    "delete no records": ("delete records",),
    "add no partitions": ("add partitions",),
    "delete no topic": ("delete topic",),
    "commit nothing": ("group, classic", "group, consumer"),
    "own everything": ("two members, classic", "two members, consumer"),
    "commit by hand without metadata": ("offsets by hand",),
    "list no group": ("list, describe group",),
    "delete no group": ("delete group",),
    "commit what is aborted": ("transaction", "transactional copy"),
    "read uncommitted": ("read committed",),
}


class LyingClient(Client):
    def __init__(self, lie: str, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._lie = lie

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        kept = {} if self._lie == "create without config" else config
        count = 1 if self._lie == "create without partitions" else partitions
        super().create(topic, count, kept)

    def describe(self, topic: str) -> dict[str, str]:
        if self._lie == "describe from memory":
            return {"cleanup.policy": "delete", "compression.type": "producer"}
        return super().describe(topic)

    def alter(self, topic: str, config: dict[str, str]) -> None:
        if self._lie != "alter nothing":
            super().alter(topic, config)

    def produce(self, topic: str, partition: int, codec: str, records: list[Line]) -> list[int]:
        used = "none" if self._lie == "send uncompressed" else codec
        return super().produce(topic, partition, used, records)

    def open(self, topic: str, partition: int, start: str, at: int) -> None:
        beginning = self._lie == "start at the beginning"
        super().open(topic, partition, "earliest" if beginning else start, at)

    def take(self, count: int, timeout_ms: int) -> list[Found]:
        read = super().take(count, timeout_ms)
        for row in read[-1:]:
            if self._lie == "wrong offsets":
                row["offset"] += 1
            elif self._lie == "wrong values":
                row["value"] = row["key"]
            elif self._lie == "wrong times":
                row["timestamp"] += 1
        for row in read:
            if self._lie == "wrong headers":
                row["headers"] = row["headers"][::-1]
            elif self._lie == "empty for null":
                row["value"] = row["value"] or ""
        return read

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        if self._lie != "delete no records":
            super().delete_records(topic, partition, before)

    def add_partitions(self, topic: str, total: int) -> None:
        if self._lie != "add no partitions":
            super().add_partitions(topic, total)

    def delete(self, topic: str) -> None:
        if self._lie != "delete no topic":
            super().delete(topic)

    def commit(self, member: str) -> None:
        if self._lie != "commit nothing":
            super().commit(member)

    def assigned(self, member: str) -> list[int]:
        return [0, 1, 2, 3] if self._lie == "own everything" else super().assigned(member)

    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, metadata: str
    ) -> None:
        kept = "" if self._lie == "commit by hand without metadata" else metadata
        super().commit_offset(group, topic, partition, offset, kept)

    def list_groups(self) -> list[str]:
        return [] if self._lie == "list no group" else super().list_groups()

    def delete_group(self, group: str) -> None:
        if self._lie != "delete no group":
            super().delete_group(group)

    def transaction(
        self, transactional_id: str, topic: str, records: list[Line], commit: bool
    ) -> None:
        commits = commit or self._lie == "commit what is aborted"
        super().transaction(transactional_id, topic, records, commits)

    def copy(
        self, transactional_id: str, group: str, topic: str, target: str, count: int, commit: bool
    ) -> None:
        commits = commit or self._lie == "commit what is aborted"
        super().copy(transactional_id, group, topic, target, count, commits)

    def isolation(self) -> str:
        uncommitted = self._lie == "read uncommitted"
        return "read_uncommitted" if uncommitted else super().isolation()


if __name__ == "__main__":
    serve(LyingClient(sys.argv[1], sys.argv[2]), sys.argv[1])
