"""Every row once: tasks leave transactions open, the driver decides and ends them.

The order of a batch, and who does it:

1. `prepare`, driver, before the first task: become the query's only driver, finish what was
   decided, abort what was not.
2. `write`, each task: a transaction of its own. A batch that is decided already is not written.
3. `commit`, driver: see that every transaction is still open, write one decision, then commit them
   all, then write that it is done.

So a crash before the decision leaves transactions that the next `prepare` aborts, and one after it
leaves transactions that the next `prepare` commits; Spark runs the batch again in both cases, and
it is written in the first alone. A driver that was replaced cannot decide, because its token is of
an older epoch. Readers of what is committed see transaction after transaction, each whole.

Spark makes a writer anew for the tasks and for the commit. Only the one for the tasks is pickled,
on the driver and before any task: that is where `prepare` is called.
"""

import pickle
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from runnel.arrow import connections
from runnel.arrow.errors import OptionError, SinkError
from runnel.client.cluster import ClientError, Cluster, RefusedError
from runnel.client.transactions import describe_transaction, list_transactions
from runnel.errors import ErrorCode
from runnel.spark.steps import reached
from runnel.spark.tasks import Task, settle, this_task
from runnel.spark.writes.decisions import Decision, Decisions, Token
from runnel.spark.writes.producing import Producing
from runnel.spark.writes.sink_options import SinkOptions
from runnel.spark.writes.transactional import OpenTransaction, Producer, begin, end

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX: Final = "runnel-spark"
SLOTS: Final = 8  # transactional ids of a partition: attempts side by side have different ones
DECIDING_TIMEOUT_MS: Final = 60_000
LEFT_OF_TIMEOUT: Final = 0.1  # without so much of it left nothing is decided
ONGOING: Final = "Ongoing"
BATCH_WRITES: Final = "batch"  # instead of Spark's id of a query, which a batch write has not
LOST: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class NotPreparedError(SinkError, pickle.PicklingError):
    """Raised while Spark pickles a writer, which passes on errors of pickling alone as they are."""


@dataclass(frozen=True)
class Prepared:
    """What the tasks of a batch are told."""

    token: Token
    decided: Decision | None  # the last one, which is done
    prepared_s: float  # monotonic, on the driver

    def is_decided(self, query: str, batch_id: int) -> bool:
        """A checkpoint of another query counts its batches anew."""
        last = self.decided
        return last is not None and last.query == query and batch_id <= last.batch_id


@dataclass
class Left(WriterCommitMessage):
    """What a task leaves to the driver."""

    prepared: Prepared
    query: str
    batch_id: int
    open: OpenTransaction | None  # None where there was no row
    records: int = 0


class _PreparedForTasks:
    """Made for a batch's tasks, where it is pickled, or for its commit, where it is not."""

    def __init__(self, options: SinkOptions, prepared: Prepared | None = None) -> None:
        self._options = options
        self._prepared = prepared

    def __reduce__(self) -> tuple[Any, ...]:
        if self._prepared is None:
            self._prepared = prepare(self._options)
        return type(self), (self._options, self._prepared)


class ExactlyOnceStreamWriter(_PreparedForTasks, DataSourceStreamArrowWriter):
    """The batch's number is Spark's."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Left:
        assert self._prepared is not None, "only tasks write"
        task = this_task()
        if task.batch_id is None:
            raise SinkError("Spark has not told this task its batch; exactlyOnce needs it")
        return write_rows(self._options, self._prepared, task.query, task.batch_id, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        left = _left(messages)
        if any(each.batch_id != batchId for each in left):
            raise SinkError(
                f"tasks of batch {batchId} were told another number; nothing is decided"
            )
        commit(self._options, left)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        abort(self._options, messages)


class ExactlyOnceBatchWriter(_PreparedForTasks, DataSourceArrowWriter):
    """A batch write has no number of its own: the next one, unless the user gives it one."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Left:
        assert self._prepared is not None, "only tasks write"
        # In `foreachBatch` numbers are those of a checkpoint, and another counts them anew.
        query = this_task().query or BATCH_WRITES
        batch_id = self._options.batch_id
        if batch_id is None:
            last = self._prepared.decided
            is_first = last is None or last.query != query
            batch_id = 0 if last is None or is_first else last.batch_id + 1
        return write_rows(self._options, self._prepared, query, batch_id, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit(self._options, _left(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort(self._options, messages)


def prepare(options: SinkOptions) -> Prepared:
    """On the driver, before the tasks of a batch. Raises NotPreparedError, and says what to do."""
    cluster = connections.take(options.client, int(options.delivery_timeout_s * 1000))
    try:
        found = _prepared(cluster, options)
    except (ClientError, SinkError, OptionError) as error:
        cluster.close()
        subject = "" if isinstance(error, SinkError) else f"query {options.query_id}: "
        raise NotPreparedError(f"{subject}{error}") from None
    connections.give_back(options.client, cluster)
    reached("planned")
    return found


def _prepared(cluster: Cluster, options: SinkOptions) -> Prepared:
    decisions = Decisions(cluster, options.decisions_topic, options.query_id)
    driver_id = f"{PREFIX}:{options.query_id}:driver"
    owner = begin(cluster, driver_id, DECIDING_TIMEOUT_MS)
    token = Token(OpenTransaction(driver_id, owner.producer_id, owner.epoch))
    prepared_s = time.monotonic()
    last = decisions.last()
    if last is not None and not last.is_done:
        _end_all(cluster, options, last)
        last = last._replace(transactions=())
        token = decisions.write(token, last)
    _abort_open(cluster, options)
    return Prepared(token, last, prepared_s)


def _abort_open(cluster: Cluster, options: SinkOptions) -> None:
    """What nobody decided: left by tasks that failed, or by a driver that did."""
    mine = re.compile(rf"{PREFIX}:{re.escape(options.query_id)}:\d+:\d+")
    listed = cluster.retried(lambda: list_transactions(cluster, [ONGOING]), reconnect=True)
    for row in listed:
        if mine.fullmatch(row.transactional_id):
            begin(cluster, row.transactional_id, options.transaction_timeout_ms)


def write_rows(
    options: SinkOptions,
    prepared: Prepared,
    query: str,
    batch_id: int,
    batches: "Iterator[pa.RecordBatch]",
) -> Left:
    """In a task: the rows are in a transaction that is open when this returns. Raises SinkError."""
    if prepared.is_decided(query, batch_id):
        return Left(prepared, query, batch_id, None)
    cluster = connections.take(options.client, int(options.delivery_timeout_s * 1000))
    task = this_task()
    slot = (task.attempt + prepared.token.owner.epoch) % SLOTS
    transactional_id = f"{PREFIX}:{options.query_id}:{task.partition}:{slot}"
    try:
        left = _written(cluster, options, task, transactional_id, batches)
    except ClientError as error:
        cluster.close()
        raise SinkError(f"rows could not be written: {error}") from None
    except BaseException:  # an answer may be left unread
        cluster.close()
        raise
    connections.give_back(options.client, cluster)
    reached("written")
    return Left(prepared, query, batch_id, *left)


def _written(
    cluster: Cluster,
    options: SinkOptions,
    task: Task,
    transactional_id: str,
    batches: "Iterator[pa.RecordBatch]",
) -> tuple[OpenTransaction | None, int]:
    producer: Producer | None = None
    settle()
    producing: Producing | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if producing is None:
            producer = begin(cluster, transactional_id, options.transaction_timeout_ms)
            producing = Producing(cluster, options, producer, task.partition)
        producing.write(batch)
        reached("writing")
    if producer is None or producing is None:
        return None, 0
    written = producing.finish()
    open_ = OpenTransaction(transactional_id, producer.producer_id, producer.epoch)
    return open_, written.records


def commit(options: SinkOptions, messages: Sequence[Left]) -> None:
    """On the driver, when all tasks have succeeded. Raises SinkError, and says what to do."""
    open_ = tuple(left.open for left in messages if left.open is not None)
    if not open_:  # no row, or decided before
        return
    first = messages[0]
    cluster = connections.take(options.client, int(options.delivery_timeout_s * 1000))
    try:
        _ensure_open(cluster, options, first.prepared, open_)
        decisions = Decisions(cluster, options.decisions_topic, options.query_id)
        decision = Decision(first.query, first.batch_id, open_)
        token = decisions.write(first.prepared.token, decision)
        reached("decision written")
        _end_all(cluster, options, decision)
        decisions.write(token, decision._replace(transactions=()))
    except ClientError as error:
        cluster.close()
        raise _undecided(options, first.batch_id, error) from None
    except BaseException:
        cluster.close()
        raise
    connections.give_back(options.client, cluster)
    reached("transactions ended")


def abort(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """On the driver, when a task has failed for good, or when `commit` has.

    In the second case a decision may have been written, and what was decided must not be aborted:
    that is left to the next `prepare`. Then no message is missing, because else nobody would have
    called `commit`.
    """
    if None not in messages:
        return
    cluster = connections.take(options.client, int(options.delivery_timeout_s * 1000))
    try:
        for left in _left(messages):
            if left.open is not None:
                end(cluster, left.open, commit=False)
    except ClientError:  # so that, too, is left to the next `prepare`
        cluster.close()
        return
    connections.give_back(options.client, cluster)


def _ensure_open(
    cluster: Cluster, options: SinkOptions, prepared: Prepared, open_: Sequence[OpenTransaction]
) -> None:
    """Nothing is decided that could not be kept: a transaction that is gone fails the batch."""
    timeout_s = options.transaction_timeout_ms / 1000
    left_s = prepared.prepared_s + timeout_s - time.monotonic()
    if left_s < LEFT_OF_TIMEOUT * timeout_s:
        raise SinkError(
            f"query {options.query_id}: the batch took {timeout_s - left_s:.0f} s, and its"
            f" transactions end after {timeout_s:.0f} s. Nothing of it was committed. Set"
            " transactionTimeout higher (and with it the broker's transaction.max.timeout.ms), or"
            " make batches smaller (maxOffsetsPerTrigger)"
        )
    for each in open_:
        found = cluster.retried(
            lambda each=each: describe_transaction(cluster, each.transactional_id),  # type: ignore[misc]  # bound at once
            reconnect=True,
        )
        if (found.state, found.producer_id, found.producer_epoch) != (ONGOING, *each[1:]):
            raise SinkError(
                f"query {options.query_id}: transaction {each.transactional_id} is not open any"
                f" more ({found.state}): it has timed out, or the query runs twice. Nothing of the"
                " batch was committed; start the query again, once"
            )


def _end_all(cluster: Cluster, options: SinkOptions, decision: Decision) -> None:
    """Commit what was decided; again does no harm. Raises SinkError if one is lost."""
    half = max(0, len(decision.transactions) // 2 - 1)
    for number, each in enumerate(decision.transactions):
        try:
            end(cluster, each, commit=True)
        except RefusedError as error:
            if error.code not in LOST:
                raise
            raise SinkError(
                f"query {options.query_id}: batch {decision.batch_id} was decided, but transaction"
                f" {each.transactional_id} was aborted before it could be committed"
                f" ({error.code.name}): it was open for longer than transactionTimeout. Its rows"
                f" are not in the topic, those of {number} others are. See 'When it stops' in"
                " docs/spark-sinks.md"
            ) from None
        if number == half:
            reached("half of the transactions ended")


def _undecided(options: SinkOptions, batch_id: int, error: ClientError) -> SinkError:
    if isinstance(error, RefusedError) and error.code in LOST:
        return SinkError(
            f"query {options.query_id}: batch {batch_id} was not committed here: another driver of"
            f" the query has taken over ({error}). Run a query of one queryId once at a time"
        )
    return SinkError(
        f"query {options.query_id}: batch {batch_id} could not be committed: {error}. Start the"
        " query again: what was decided is finished then, what was not is written anew"
    )


def _left(messages: Sequence[WriterCommitMessage | None]) -> list[Left]:
    return [message for message in messages if isinstance(message, Left)]
