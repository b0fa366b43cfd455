"""A table back to a topic, each row once, whatever is killed when. No Spark is needed.

The table's files are listed once and noted; rows go out in transactions, and each transaction says
how many rows are done, as an offset of a consumer group of its own. Who starts again asks the group
and goes on after that row.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.pipelines.kind import Report
from runnel.pipelines.table_records import OutRecord, Shape, records
from runnel.spark import steps
from runnel.spark.lake.kept_files import Kept, KeptFile, row_batches
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import open_table

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

NOTE: Final = "replay.json"
ROWS_PER_TRANSACTION: Final = 10_000
TRANSACTION_S: Final = 60
PATIENCE_S: Final = 30.0
RECONNECT_MS: Final = 1_000  # a broker that was restarted is found within that
TURN_S: Final = 5.0  # then whoever runs it is told


class ReplayError(Exception):
    """The topic cannot be written to; the message says why."""


@dataclass(frozen=True)
class Replay:
    """What is asked for."""

    table: LakeOptions
    bootstrap: str
    topic: str
    from_ms: int | None = None  # by the column `timestamp`; up to `until_ms`, exclusive
    until_ms: int | None = None
    rows_per_second: float = 0.0  # 0: as fast as it goes
    keeps_partitions: bool = False
    written: str = ""  # the times as the user wrote them: `-2h` is another time with each start

    @property
    def asked(self) -> str:
        return f"{self.table.table} {self.written or f'{self.from_ms} {self.until_ms}'}"


@dataclass(frozen=True)
class _Plan:
    id: str
    topic: str
    asked: str
    files: tuple[tuple[str, int, tuple[str | None, ...]], ...]
    from_ms: int | None = None  # what the times meant when it began
    until_ms: int | None = None


class Replayer:
    """`turn` until it says that there is no more; it may be killed at any moment."""

    def __init__(self, replay: Replay, notes: Path, is_stopping: Callable[[], bool]) -> None:
        self._replay = replay
        self._file = notes / NOTE
        self._is_stopping = is_stopping
        kept = open_table(replay.table).kept()
        if kept is None:
            raise TableError(f"table={replay.table.table} is not there: there is nothing to replay")
        missing = (replay.from_ms or replay.until_ms) and "timestamp" not in kept.schema.names
        if missing:
            raise TableError(f"{kept.where} has no column timestamp to choose rows by")
        self._plan = self._read() or self._make(kept)
        files = tuple(KeptFile(*file) for file in self._plan.files)
        self._kept = Kept(kept.where, kept.schema, kept.partition_by, kept.in_files, files)
        self._rows = [_row_count(file) for file in files]
        self._sink: _Sink | None = None
        self._done = 0
        self._pace_from = time.monotonic()
        self._paced = 0

    @property
    def total(self) -> int:
        return sum(self._rows)

    @property
    def done(self) -> int:
        """Rows gone through, those of other times included."""
        return self._done

    def turn(self, seconds: float = TURN_S) -> Report:
        """Some of the rows. Raises ReplayError, TableError."""
        if self._sink is None:
            self._sink = _Sink(self._replay, self._plan.id)
            self._remember()  # only now: a topic that is not there begins nothing
            self._done = self._sink.position
        until = time.monotonic() + seconds
        sent = 0
        chunk: list[OutRecord] = []
        counted = 0
        for record in self._from(self._done):
            counted += 1
            if record is not None:
                chunk.append(record)
            if counted >= self._chunk_rows():
                sent += self._commit(chunk, counted)
                chunk, counted = [], 0
                if time.monotonic() > until or self._is_stopping():
                    return self._report(sent)
        if counted:
            sent += self._commit(chunk, counted)
        self._sink.close()
        self._file.unlink(missing_ok=True)
        return self._report(sent)

    def _report(self, sent: int) -> Report:
        left = self.total - self._done
        return Report(rows=sent, lag=left, has_more=left > 0 and not self._is_stopping())

    def _chunk_rows(self) -> int:
        rate = self._replay.rows_per_second
        return ROWS_PER_TRANSACTION if not rate else max(1, min(ROWS_PER_TRANSACTION, int(rate)))

    def _commit(self, chunk: list[OutRecord], counted: int) -> int:
        assert self._sink is not None
        self._sink.send(chunk, self._done + counted)
        self._done += counted
        self._paced += len(chunk)
        if self._replay.rows_per_second:
            due = self._pace_from + self._paced / self._replay.rows_per_second
            while (wait := due - time.monotonic()) > 0 and not self._is_stopping():
                time.sleep(min(0.1, wait))
        return len(chunk)

    def _from(self, row: int) -> Iterator[OutRecord | None]:
        shape = Shape.of(self._kept.schema)
        for file, rows in zip(self._kept.files, self._rows, strict=True):
            if row >= rows:
                row -= rows
                continue
            for batch in row_batches(self._kept, file):
                if row >= batch.num_rows:
                    row -= batch.num_rows
                    continue
                part, row = batch.slice(row), 0
                yield from records(part, shape, self._plan.from_ms, self._plan.until_ms)

    def _read(self) -> _Plan | None:
        try:
            plan = _Plan(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return None
        if (plan.topic, plan.asked) != (self._replay.topic, self._replay.asked):
            raise TableError(
                f"a replay to {plan.topic} was begun and not finished: do that first, with the"
                f" options that it had, or delete {self._file}"
            )
        return plan

    def _make(self, kept: Kept) -> _Plan:
        files = tuple((file.path, file.size_bytes, file.values) for file in kept.files)
        asked, id_ = self._replay, uuid.uuid4().hex[:12]
        return _Plan(id_, asked.topic, asked.asked, files, asked.from_ms, asked.until_ms)

    def _remember(self) -> None:
        part = self._file.with_suffix(".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(self._plan)))
        part.replace(self._file)


class _Sink:
    """A transactional producer, and the group that says how far it is."""

    def __init__(self, replay: Replay, id_: str) -> None:
        self._replay = replay
        self._name = f"runnel-replay-{id_}"
        self._consumer = self._consume()
        self._partitions = self._count_partitions()
        self._producer = self._produce()  # fences one that is thought dead, before it is asked
        self.position = self._committed()

    def _consume(self) -> "Consumer":
        from confluent_kafka import Consumer

        settings = {"group.id": self._name, "isolation.level": "read_committed"}
        return Consumer({**self._common(), **settings, "enable.auto.commit": False})

    def _produce(self) -> "Producer":
        from confluent_kafka import KafkaException, Producer

        from runnel.client.librdkafka import for_transactions

        producer = Producer(
            {
                **self._common(),
                **for_transactions(),
                "transactional.id": self._name,
                "transaction.timeout.ms": TRANSACTION_S * 1000,
                "partitioner": "murmur2_random",
                "linger.ms": 20,
            }
        )
        try:
            producer.init_transactions(PATIENCE_S)
        except KafkaException as error:
            raise ReplayError(f"{self._replay.bootstrap}: {error.args[0].str()}") from None
        return producer

    def _common(self) -> dict[str, str | int | float | bool]:
        return {
            "bootstrap.servers": self._replay.bootstrap,
            "reconnect.backoff.max.ms": RECONNECT_MS,
            "log_level": 0,
        }

    def _count_partitions(self) -> int:
        from confluent_kafka import KafkaException

        topic = self._replay.topic
        try:
            found = self._consumer.list_topics(topic, PATIENCE_S).topics[topic]
        except KafkaException as error:
            raise ReplayError(f"{self._replay.bootstrap}: {error.args[0].str()}") from None
        if found.error is not None or not found.partitions:
            raise ReplayError(f"topic {topic} is not there: 'runnel topic create {topic}' makes it")
        return len(found.partitions)

    def _committed(self) -> int:
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(self._replay.topic, 0)]
        (found,) = self._consumer.committed(asked, PATIENCE_S)
        return max(0, found.offset)

    def send(self, chunk: list[OutRecord], position: int) -> None:
        """All of them and the position, or nothing."""
        from confluent_kafka import KafkaException, TopicPartition

        producer, topic = self._producer, self._replay.topic
        try:
            producer.begin_transaction()
            for record in chunk:
                self._add(record)
            steps.reached("replaying")
            producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, position)],
                self._consumer.consumer_group_metadata(),
                PATIENCE_S,
            )
            producer.commit_transaction(PATIENCE_S)
            steps.reached("replay committed")
        except KafkaException as error:
            raise ReplayError(f"{topic}: {error.args[0].str()}") from None

    def _add(self, record: OutRecord) -> None:
        anywhere = record.partition is None or not self._replay.keeps_partitions
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._producer.produce(
                    self._replay.topic,
                    record.value,
                    record.key,
                    partition=-1 if anywhere else (record.partition or 0) % self._partitions,
                    timestamp=record.timestamp_ms or 0,
                    headers=record.headers,
                )
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise ReplayError(
                        f"{self._replay.topic}: no broker has taken a record for {PATIENCE_S:.0f} s"
                    ) from None
                self._producer.poll(0.1)

    def close(self) -> None:
        """The group has served; that it stays if this fails does no harm."""
        from confluent_kafka.admin import AdminClient

        self._consumer.close()
        admin = AdminClient(self._common())
        for done in admin.delete_consumer_groups([self._name]).values():
            try:
                done.result(PATIENCE_S)
            except Exception:  # noqa: BLE001  # whatever a broker says to it
                return


def _row_count(file: KeptFile) -> int:
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(file.path).num_rows)
    except FileNotFoundError as error:
        raise TableError(
            f"{file.path} is gone: it was expired since the replay began. Delete the note of the"
            f" replay to begin anew; rows that are sent already are sent again then"
        ) from error
