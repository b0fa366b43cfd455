"""Runs a pipeline: batch after batch, with retries, until it is done, stopped or has failed.

A stream that runs once is one `availableNow` query. One that goes on is one query with a
processing-time trigger, because starting a query costs seconds (ADR 40); for work between batches
it is stopped after the batch in hand and started again.
"""

import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from runnel.pipelines import origin as origins
from runnel.pipelines import status as statuses
from runnel.pipelines.checkpoint import reached
from runnel.pipelines.failures import (
    MISTAKE,
    UNKNOWN,
    UNKNOWN_RETRIES_MAX,
    Failure,
    PipelineError,
    classify,
)
from runnel.pipelines.home import Home
from runnel.pipelines.kind import Flow, Kind, Report, Run, Stream, Turn, Turns
from runnel.pipelines.measuring import Batch, Batches
from runnel.pipelines.origin import Origin
from runnel.pipelines.skips import Skips
from runnel.pipelines.sparking import check_jvm, spark_for
from runnel.pipelines.spec import CONTINUOUS, ONCE, Spec
from runnel.pipelines.status import SKIPPED_MAX, Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S: Final = 0.1
TELL_EVERY_S: Final = 1.0
BACKOFF_FIRST_S: Final = 1.0
BACKOFF_MOST_S: Final = 60.0
CONTINUOUS_PAUSE_MS: Final = 1000  # between turns of what is not a stream


class Watch(Protocol):
    """Whoever shows a run; called in the runner's own thread."""

    def ready(self) -> None:
        """Spark is up. It has set a signal handler of its own: now is the time for another."""

    def changed(self, status: Status, batch: Batch | None) -> None:
        """After each batch and each change of state, else once a second."""

    def line(self, text: str) -> None:
        """Something that happened, for a person."""


class Runner:
    def __init__(self, spec: Spec, kind: Kind, home: Home, watch: Watch) -> None:
        self._spec = spec
        self._kind = kind
        self._home = home
        self._watch = watch
        self._told_at = 0.0
        self._is_stopping = False
        self._is_hurried = False
        self._is_status_stale = False
        self._tries = 0  # since something last worked
        self._query_id = spec.name
        self._skips = Skips(home.spark_log)
        self.status = Status.of_this_process(spec.name, spec.kind, str(spec.file), str(spec.every))

    def stop(self) -> None:
        """After the batch in hand; asked for again, at once. Safe in a signal handler."""
        self._is_hurried = self._is_stopping
        self._is_stopping = True

    def run(self) -> Status:
        """Until it ends. Raises PipelineError, BusyError."""
        try:
            with self._home.claimed():
                self._run_alone()
        except OSError as error:  # of the folder itself: no room, no right to write
            raise PipelineError(classify(self._spec, error)) from error
        return self.status

    def _run_alone(self) -> None:
        self._set(state="starting")
        try:
            self._begin()
            self._run()
            self._set(state="stopped" if self._is_stopping else "finished")
        except PipelineError as error:
            self._set(state="failed", error=error.failure.text, error_at=time.time())
            raise
        finally:
            with suppress(OSError):  # a line less in the history
                self._home.remember(self.status.as_dict())

    def _begin(self) -> None:
        """Whether the checkpoint is this file's. Raises PipelineError."""
        try:
            origin = origins.read(self._home)
        except origins.OriginError as error:
            raise PipelineError(Failure(MISTAKE, str(error))) from None
        self._query_id = origin.query_id(self._spec.name)
        if origin.start:
            self._spec = _starting(self._spec, origin.start)
        now = origins.told(self._spec)
        has_state = reached(self._home.checkpoint).has_state
        for change in origins.changes(origin.spec, now, has_state=has_state):
            if change.needs_reset:
                raise PipelineError(
                    Failure(
                        MISTAKE,
                        f"{change.what} since this pipeline began: {change.meaning}."
                        f" 'runnel pipeline reset {self._spec.name} --to earliest' begins anew, and"
                        " says first what that means; another name would be another pipeline.",
                    )
                )
            self._watch.line(f"{change.what} since the last run: {change.meaning}")
        origins.write(self._home, Origin(origin.generation, origin.start, now))

    def _run(self) -> None:
        with ExitStack() as stack:
            spark: SparkSession | None = None
            try:
                if self._kind.uses_spark:
                    spark = stack.enter_context(spark_for(self._spec, self._home))
            except Exception as error:
                raise PipelineError(classify(self._spec, error)) from error
            self._watch.ready()
            run = Run(
                spec=self._spec,
                spark=cast("SparkSession", spark),  # None where the kind uses none
                home=self._home.folder,
                query_id=self._query_id,
                is_stopping=lambda: self._is_stopping,
                tell=self._watch.line,
            )
            while not self._is_stopping:
                try:
                    return self._flow(self._kind.build(run))
                except Exception as error:  # noqa: BLE001  # whatever its parts raise
                    check_jvm(spark, self._home)
                    self._after(classify(self._spec, error), error)

    def _after(self, failure: Failure, error: Exception) -> None:
        """Waits before the next try, or raises PipelineError."""
        if self._is_stopping and failure.is_tried_again:
            return
        most = self._spec.retries
        most = min(most, UNKNOWN_RETRIES_MAX) if failure.sort == UNKNOWN else most
        if not failure.is_tried_again or self._tries >= most:
            tried = f" (tried {self._tries + 1} times)" if self._tries else ""
            raise PipelineError(replace(failure, text=failure.text + tried)) from error
        wait_s = min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2**self._tries)
        self._tries += 1
        self._watch.line(f"{failure.text}; try {self._tries} of {most} in {wait_s:.0f} s")
        self._set(
            state="retrying",
            error=failure.text,
            error_at=time.time(),
            retries=self.status.retries + 1,
        )
        self._wait(wait_s)

    def _flow(self, flow: Flow) -> None:
        if isinstance(flow, Turns):
            self._turns(flow)
            return
        while not self._is_stopping:
            pause_at = self._pause_at(flow)
            self._query(flow, pause_at)
            self._between(flow)
            if self._spec.every.mode == ONCE:
                return

    def _pause_at(self, flow: Flow) -> float | None:
        if self._spec.every.mode == ONCE or flow.between is None:
            return None
        return time.monotonic() + flow.between_every_ms / 1000

    def _query(self, flow: Stream, pause_at: float | None) -> None:
        """Until it ends, fails, is to be stopped or is to make way for the work between batches."""
        query = self._started(flow)
        batches = Batches(query, flow.rows_of)
        self._set(state="running")
        try:
            while query.isActive:
                self._progress(batches)
                is_due = pause_at is not None and time.monotonic() >= pause_at
                if self._is_stopping or (is_due and _has_begun(query)):
                    self._end_after_batch(query, batches)
                    break
                time.sleep(POLL_S)
        finally:
            _stop(query)
        self._progress(batches)
        failed = query.exception()
        if failed is not None and not self._is_stopping:
            raise failed

    def _started(self, flow: Stream) -> "StreamingQuery":
        every = self._spec.every
        writer = (
            flow.writer.option("checkpointLocation", str(self._home.checkpoint))
            .option("queryId", self._query_id)
            .queryName(self._spec.name)
        )
        if every.mode == ONCE:
            return writer.trigger(availableNow=True).start()
        interval_ms = 0 if every.mode == CONTINUOUS else every.interval_ms
        return writer.trigger(processingTime=f"{interval_ms} milliseconds").start()

    def _end_after_batch(self, query: "StreamingQuery", batches: Batches) -> None:
        if self._is_stopping:
            self._set(state="stopping")
        begun = self.status.batches
        while query.isActive and not self._is_hurried:
            now: dict[str, Any] = query.status
            self._progress(batches)
            is_in_batch = now["isTriggerActive"] and now["isDataAvailable"]
            if not is_in_batch or self.status.batches > begun:
                return
            time.sleep(POLL_S)

    def _progress(self, batches: Batches) -> None:
        for batch in batches.new():
            self._tries = 0
            before = self.status
            self._set(
                batch,
                state="running" if before.state == "retrying" else before.state,
                batch=batch.number if batch.rows or before.batch is None else before.batch,
                batches=before.batches + 1 if batch.rows else before.batches,
                rows=before.rows + batch.rows,
                rows_per_second=batch.rows_per_second,
                batch_seconds=batch.seconds,
                last_batch_at=time.time() if batch.rows else before.last_batch_at,
                lag=batch.lag,
                lag_by_partition=batch.lag_by_partition,
                state_rows=batch.state_rows,
                state_bytes=batch.state_bytes,
                watermark=batch.watermark,
            )
        for text in self._skips.new():
            self._watch.line(f"skipped: {text}")
            self._set(skipped=(*self.status.skipped, text)[-SKIPPED_MAX:])
        if time.monotonic() - self._told_at > TELL_EVERY_S:
            self._set()

    def _turns(self, flow: Turns) -> None:
        every, number = self._spec.every, 0
        interval_s = (CONTINUOUS_PAUSE_MS if every.mode == CONTINUOUS else every.interval_ms) / 1000
        between_at = time.monotonic() + flow.between_every_ms / 1000
        while not self._is_stopping:
            began = time.monotonic()
            self._set(state="running")
            self._reported(flow.step(Turn(number)), number, began)
            number += 1
            is_last = every.mode == ONCE and not self._has_more
            if is_last or time.monotonic() >= between_at:
                self._between(flow)
                between_at = time.monotonic() + flow.between_every_ms / 1000
            if is_last:
                return
            if not self._has_more:
                self._set(state="waiting")
                self._wait(interval_s - (time.monotonic() - began))

    def _reported(self, report: Report, number: int, began: float) -> None:
        self._tries = 0
        self._has_more = report.has_more
        seconds = max(1e-6, time.monotonic() - began)
        if report.text and report.text != self.status.note:
            self._watch.line(report.text)
        self._set(
            batch=number,
            batches=self.status.batches + 1,
            rows=self.status.rows + report.rows,
            rows_per_second=report.rows / seconds,
            batch_seconds=seconds,
            last_batch_at=time.time(),
            lag=report.lag,
            note=report.text or self.status.note,
        )

    def _between(self, flow: Flow) -> None:
        if flow.between is None or self._is_stopping:
            return
        try:
            report = flow.between()
        except Exception as error:  # noqa: BLE001  # upkeep waits; the records do not
            failure = classify(self._spec, error)
            self._watch.line(f"between batches: {failure.text}")
            self._set(error=failure.text, error_at=time.time())
            return
        if report is not None and report.text:
            self._watch.line(report.text)
            self._set(note=report.text)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._is_stopping:
            time.sleep(min(POLL_S, left))

    def _set(self, batch: Batch | None = None, /, **changes: Any) -> None:  # noqa: ANN401  # fields of Status
        self.status = replace(self.status, updated_at=time.time(), **changes)
        self._told_at = time.monotonic()
        self._watch.changed(self.status, batch)
        try:
            statuses.write(self._home, self.status)
        except OSError as error:  # the pipeline itself may still work; if not, it will say so
            if not self._is_status_stale:
                self._watch.line(f"{self._home.status_file} cannot be written: {error.strerror}")
            self._is_status_stale = True
        else:
            self._is_status_stale = False


def _starting(spec: Spec, start: str) -> Spec:
    """Where a reset has set it, whatever the file says of the first time."""
    options = spec.source.options.items()
    kept = {name: text for name, text in options if not name.lower().startswith("starting")}
    return replace(spec, source=replace(spec.source, start=start, options=kept))


def _has_begun(query: "StreamingQuery") -> bool:
    """Whether it has come to its first batch, or found nothing to read; starting takes seconds."""
    return query.lastProgress is not None or str(query.status["message"]).startswith("Waiting")


def _stop(query: "StreamingQuery") -> None:
    if query.isActive:
        query.stop()
