"""The live view of a run at a terminal: a few lines that change, and what happened above them."""

import os
import sys
import time
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from runnel.cli.figures import count_text, duration_text, seconds_text, size_text
from runnel.cli.pipeline_run import Lines, batches_text

if TYPE_CHECKING:
    from runnel.pipelines.measuring import Batch
    from runnel.pipelines.status import Status

PARTITIONS_MAX: Final = 8
COLOURS: Final = {
    "running": "green",
    "waiting": "green",
    "finished": "green",
    "starting": "yellow",
    "retrying": "yellow",
    "stopping": "yellow",
    "stopped": "yellow",
    "failed": "red",
    "crashed": "red",
}


class LiveView(Lines):
    def __init__(self) -> None:
        # The terminal itself: while Spark starts, standard error is the JVM's log.
        terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w")
        self._console = Console(file=terminal)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._spinner = Spinner("dots")

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def changed(self, status: "Status", batch: "Batch | None") -> None:
        self._live.update(Group(self._spinner, drawn(status, self.asked)))

    def line(self, text: str) -> None:
        self._console.print(Text(text))


def drawn(status: "Status", asked_to_stop: int = 0) -> RenderableType:
    """What is known, without what says nothing yet."""
    fields = fields_of(status)
    if asked_to_stop:
        fields["stopping"] = "after the batch in hand; Ctrl-C again: at once"
    table = Table.grid(padding=(0, 2))
    for name, text in fields.items():
        colour = COLOURS.get(status.state, "") if name == "state" else ""
        if name == "last error":
            colour = "red"
        table.add_row(Text(name, style="dim"), Text(text, style=colour))
    return table


def fields_of(status: "Status", now: float | None = None) -> dict[str, str]:
    """For people, in the order in which they look."""
    now = time.time() if now is None else now
    since = status.started_at
    fields = {
        "pipeline": f"{status.name} ({status.kind}), {status.every}",
        "state": f"{status.state}"
        + (f" for {duration_text(now - since)}" if status.is_active else ""),
        "rows": f"{status.rows:,} in {batches_text(status.batches)}"
        + (f", {count_text(status.rows_per_second)} rows/s" if status.batches else ""),
    }
    if status.batch is not None:
        ago = "" if status.last_batch_at is None else f", {_ago(now - status.last_batch_at)}"
        fields["last batch"] = f"{status.batch}, took {seconds_text(status.batch_seconds)}{ago}"
    if status.lag is not None:
        behind = sorted(status.lag_by_partition.items(), key=lambda pair: -pair[1])
        some = [f"{at} {count_text(lag)}" for at, lag in behind[:PARTITIONS_MAX] if lag]
        fields["lag"] = f"{count_text(status.lag)} records" + (
            f" ({', '.join(some)})" if some else ""
        )
    if status.state_rows:
        fields["state size"] = (
            f"{count_text(status.state_rows)} rows, {size_text(status.state_bytes)}"
        )
    if status.watermark:
        fields["watermark"] = status.watermark
    if status.retries:
        fields["retries"] = str(status.retries)
    if status.note:
        fields["note"] = status.note
    if status.skipped:
        fields["skipped"] = "; ".join(status.skipped)
    if status.error:
        at = "" if status.error_at is None else f" ({_ago(now - status.error_at)})"
        fields["last error"] = status.error + at
    return fields


def _ago(seconds: float) -> str:
    return f"{duration_text(max(0.0, seconds))} ago"
