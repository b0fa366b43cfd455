"""What a run tells: its status, kept for other processes, and lines for whoever watches."""

import time
from dataclasses import replace
from typing import Any, Final, Protocol

from runnel.pipelines import status as statuses
from runnel.pipelines.home import Home
from runnel.pipelines.kind import Report
from runnel.pipelines.measuring import Batch, Batches
from runnel.pipelines.skips import Skips
from runnel.pipelines.spec import Spec
from runnel.pipelines.status import SKIPPED_MAX, Status

TELL_EVERY_S: Final = 1.0


class Watch(Protocol):
    """Whoever shows a run; called in the runner's own thread."""

    def ready(self) -> None:
        """Spark is up. It has set a signal handler of its own: now is the time for another."""

    def changed(self, status: Status, batch: Batch | None) -> None:
        """After each batch and each change of state, else once a second."""

    def line(self, text: str) -> None:
        """Something that happened, for a person."""


class Telling:
    """Owned by the runner; used in its thread alone."""

    def __init__(self, spec: Spec, home: Home, watch: Watch) -> None:
        self._home = home
        self._watch = watch
        self._skips = Skips(home.spark_log)
        self._told_at = 0.0
        self._is_stale = False  # the file with the status is
        self.status = Status.of_this_process(spec.name, spec.kind, str(spec.file), str(spec.every))

    def set(self, batch: Batch | None = None, /, **changes: Any) -> None:  # noqa: ANN401  # fields of Status
        self.status = replace(self.status, updated_at=time.time(), **changes)
        self._told_at = time.monotonic()
        self._watch.changed(self.status, batch)
        try:
            statuses.write(self._home, self.status)
        except OSError as error:  # the pipeline itself may still work; if not, it will say so
            if not self._is_stale:
                self._watch.line(f"{self._home.status_file} cannot be written: {error.strerror}")
            self._is_stale = True
        else:
            self._is_stale = False

    def progress(self, batches: Batches) -> bool:
        """Whether a batch was finished since the last time."""
        new = batches.new()
        for batch in new:
            before = self.status
            self.set(
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
            self.set(skipped=(*self.status.skipped, text)[-SKIPPED_MAX:])
        if time.monotonic() - self._told_at > TELL_EVERY_S:
            self.set()
        return bool(new)

    def reported(self, report: Report, number: int, began: float) -> None:
        """A turn is done, that began at this `time.monotonic`."""
        seconds = max(1e-6, time.monotonic() - began)
        if report.text and report.text != self.status.note:
            self._watch.line(report.text)
        self.set(
            batch=number,
            batches=self.status.batches + 1,
            rows=self.status.rows + report.rows,
            rows_per_second=report.rows / seconds,
            batch_seconds=seconds,
            last_batch_at=time.time(),
            lag=report.lag,
            note=report.text or self.status.note,
        )
