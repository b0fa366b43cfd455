"""`runnel pipeline run`: the run itself, told as it goes."""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from runnel.cli.figures import count_text, seconds_text
from runnel.cli.output import EXIT_FAILED, EXIT_REFUSED, CommandError, note, show_json
from runnel.cli.pipeline_files import home_of, load, refuse_mistakes

if TYPE_CHECKING:
    from runnel.pipelines.measuring import Batch
    from runnel.pipelines.runner import Runner
    from runnel.pipelines.status import Status


def run(given: str, every: str | None, state_dir: Path | None, *, as_json: bool) -> None:
    from runnel.pipelines import checks, kinds
    from runnel.pipelines.failures import MISTAKE, PipelineError
    from runnel.pipelines.home import BusyError
    from runnel.pipelines.runner import Runner

    spec = load(given, every)
    refuse_mistakes(spec, list(checks.of_file(spec)))
    refuse_mistakes(spec, checks.missing_topics(spec))
    watch = _watch(as_json=as_json)
    watch.runner = runner = Runner(spec, kinds.find(spec.kind), home_of(spec, state_dir), watch)
    watch.ready()
    try:
        with watch:
            status = runner.run()
    except BusyError as error:
        raise CommandError(
            f"{spec.name} is running already: {error}. 'runnel pipeline stop {spec.name}' ends it."
        ) from None
    except PipelineError as error:
        raise CommandError(
            f"{spec.name}: {error}",
            EXIT_REFUSED if error.failure.sort == MISTAKE else EXIT_FAILED,
        ) from None
    watch.ended(status)


def _watch(*, as_json: bool) -> "Lines":
    if as_json:
        return JsonLines()
    if sys.stderr.isatty():
        from runnel.cli.pipeline_view import LiveView

        return LiveView()
    return Lines()


class Lines:
    """A line for each batch that had rows, where no person watches."""

    runner: "Runner"
    asked = 0

    def __enter__(self) -> None:
        """Until the block ends."""

    def __exit__(self, *error: object) -> None:
        """Nothing is held."""

    def ready(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.runner.stop()
        self.asked += 1

    def changed(self, status: "Status", batch: "Batch | None") -> None:
        if batch is not None and batch.rows:
            note(batch_text(batch))

    def line(self, text: str) -> None:
        note(text)

    def ended(self, status: "Status") -> None:
        sys.stdout.write(f"{ended_text(status)}\n")


class JsonLines(Lines):
    """The status after each change, one JSON document to a line of standard output."""

    def changed(self, status: "Status", batch: "Batch | None") -> None:
        show_json(status.as_dict())
        sys.stdout.flush()

    def ended(self, status: "Status") -> None:
        """The last line has said it."""


def batch_text(batch: "Batch") -> str:
    lag = "" if batch.lag is None else f", {count_text(batch.lag)} to come"
    rows = "1 row" if batch.rows == 1 else f"{count_text(batch.rows)} rows"
    return (
        f"batch {batch.number}: {rows} in {seconds_text(batch.seconds)},"
        f" {count_text(batch.rows_per_second)} rows/s{lag}"
    )


def ended_text(status: "Status") -> str:
    rows = "1 row" if status.rows == 1 else f"{status.rows:,} rows"
    skipped = f"; skipped {'; '.join(status.skipped)}" if status.skipped else ""
    return f"{status.name} {status.state}: {rows} in {batches_text(status.batches)}{skipped}"


def batches_text(count: int) -> str:
    return "1 batch" if count == 1 else f"{count:,} batches"
