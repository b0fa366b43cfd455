"""Runs a pipeline: batch after batch, with retries, until it is done, stopped or has failed.

A stream that runs once is one `availableNow` query. One that goes on is one query with a
processing-time trigger, because starting a query costs seconds (ADR 40); for work between batches
it is stopped after the batch in hand and started again.
"""

import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from runnel.pipelines.beginning import begin
from runnel.pipelines.failures import (
    UNKNOWN,
    UNKNOWN_RETRIES_MAX,
    Failure,
    PipelineError,
    classify,
)
from runnel.pipelines.home import Home
from runnel.pipelines.kind import Flow, Kind, Run, Stream, Turn, Turns
from runnel.pipelines.measuring import Batches
from runnel.pipelines.sparking import check_jvm, spark_for
from runnel.pipelines.spec import CONTINUOUS, ONCE, Spec
from runnel.pipelines.status import Status
from runnel.pipelines.telling import Telling, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S: Final = 0.1
BACKOFF_FIRST_S: Final = 1.0
BACKOFF_MOST_S: Final = 60.0
CONTINUOUS_PAUSE_MS: Final = 1000  # between turns of what is not a stream


class Runner:
    def __init__(self, spec: Spec, kind: Kind, home: Home, watch: Watch) -> None:
        self._spec = spec
        self._kind = kind
        self._home = home
        self._watch = watch
        self._is_stopping = False
        self._is_hurried = False
        self._tries = 0  # since something last worked
        self._query_id = spec.name
        self._telling = Telling(spec, home, watch)

    @property
    def status(self) -> Status:
        return self._telling.status

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
        self._telling.set(state="starting")
        try:
            self._spec, self._query_id = begin(self._spec, self._home, self._watch.line)
            self._run()
            self._telling.set(state="stopped" if self._is_stopping else "finished")
        except PipelineError as error:
            self._telling.set(state="failed", error=error.failure.text, error_at=time.time())
            raise
        finally:
            with suppress(OSError):  # a line less in the history
                self._home.remember(self.status.as_dict())

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
        self._telling.set(
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
        self._telling.set(state="running")
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
            self._telling.set(state="stopping")
        begun = self.status.batches
        while query.isActive and not self._is_hurried:
            now: dict[str, Any] = query.status
            self._progress(batches)
            is_in_batch = now["isTriggerActive"] and now["isDataAvailable"]
            if not is_in_batch or self.status.batches > begun:
                return
            time.sleep(POLL_S)

    def _progress(self, batches: Batches) -> None:
        if self._telling.progress(batches):
            self._tries = 0

    def _turns(self, flow: Turns) -> None:
        every, number = self._spec.every, 0
        interval_s = (CONTINUOUS_PAUSE_MS if every.mode == CONTINUOUS else every.interval_ms) / 1000
        between_at = time.monotonic() + flow.between_every_ms / 1000
        while not self._is_stopping:
            began = time.monotonic()
            self._telling.set(state="running")
            report = flow.step(Turn(number))
            self._tries = 0
            self._telling.reported(report, number, began)
            number += 1
            is_last = every.mode == ONCE and not report.has_more
            if is_last or time.monotonic() >= between_at:
                self._between(flow)
                between_at = time.monotonic() + flow.between_every_ms / 1000
            if is_last:
                return
            if not report.has_more:
                self._telling.set(state="waiting")
                self._wait(interval_s - (time.monotonic() - began))

    def _between(self, flow: Flow) -> None:
        if flow.between is None or self._is_stopping:
            return
        try:
            report = flow.between()
        except Exception as error:  # noqa: BLE001  # upkeep waits; the records do not
            failure = classify(self._spec, error)
            self._watch.line(f"between batches: {failure.text}")
            self._telling.set(error=failure.text, error_at=time.time())
            return
        if report is not None and report.text:
            self._watch.line(report.text)
            self._telling.set(note=report.text)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._is_stopping:
            time.sleep(min(POLL_S, left))


def _has_begun(query: "StreamingQuery") -> bool:
    """Whether it has come to its first batch, or found nothing to read; starting takes seconds."""
    return query.lastProgress is not None or str(query.status["message"]).startswith("Waiting")


def _stop(query: "StreamingQuery") -> None:
    if query.isActive:
        query.stop()
