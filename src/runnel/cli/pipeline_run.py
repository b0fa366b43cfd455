"""`runnel pipeline run`: the run itself, told as it goes."""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from runnel.cli.figures import count_text, seconds_text
from runnel.cli.output import EXIT_FAILED, EXIT_REFUSED, CommandError, note, show_json
from runnel.cli.pipeline_files import home_of, load

if TYPE_CHECKING:
    from runnel.pipelines.measuring import Batch
    from runnel.pipelines.runner import Runner, Watch
    from runnel.pipelines.status import Status


def run(given: str, every: str | None, state_dir: Path | None, *, as_json: bool) -> None:
    from runnel.pipelines import kinds
    from runnel.pipelines.failures import MISTAKE, PipelineError
    from runnel.pipelines.home import BusyError
    from runnel.pipelines.runner import Runner

    spec = load(given, every)
    home = home_of(spec, state_dir)
    watch: _Lines = _JsonLines() if as_json else _Lines()
    runner = Runner(spec, kinds.find(spec.kind), home, watch)
    watch.runner = runner
    watch.ready()
    try:
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


class _Lines:
    """A line for each batch that had rows, where no person watches."""

    runner: "Runner"

    def ready(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.runner.stop()

    def changed(self, status: "Status", batch: "Batch | None") -> None:
        if batch is not None and batch.rows:
            lag = "" if status.lag is None else f", lag {count_text(status.lag)}"
            note(
                f"batch {batch.number}: {count_text(batch.rows)} rows in"
                f" {seconds_text(batch.seconds)}, {count_text(batch.rows_per_second)} rows/s{lag}"
            )

    def line(self, text: str) -> None:
        note(text)

    def ended(self, status: "Status") -> None:
        sys.stdout.write(
            f"{status.name} {status.state}: {status.rows} rows in {status.batches} batches\n"
        )


class _JsonLines(_Lines):
    def changed(self, status: "Status", batch: "Batch | None") -> None:
        show_json(status.as_dict())
        sys.stdout.flush()

    def ended(self, status: "Status") -> None:
        pass


if TYPE_CHECKING:
    _: Watch = _Lines()
