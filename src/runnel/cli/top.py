"""`runnel top`: a live view of one broker in the terminal."""

import sys
import time
from typing import Annotated, Final

import typer

from runnel.cli.metrics import ensure_interval
from runnel.cli.output import examples
from runnel.cli.scraping import ReadyFile, Url, metrics_url

ONCE_INTERVAL_MAX_S: Final = 1.0  # nobody waits longer for a single frame
TOP_EXAMPLES: Final = examples(
    "runnel top", "runnel top --url broker-1:9644 --interval 5", "runnel top --once"
)


def top(
    url: Url = None,
    ready_file: ReadyFile = None,
    interval: Annotated[
        float,
        typer.Option("--interval", "-i", metavar="SECONDS", help="How often it looks."),
    ] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Print one frame, and no keys.")
    ] = False,
) -> None:
    """Watch a broker: throughput, requests, topics, groups, storage. q quits."""
    from rich.console import Console

    from runnel.cli.top_live import LiveView

    ensure_interval(interval)
    view = LiveView(metrics_url(url, ready_file), interval, Console())
    view.look()  # who does not answer at all is told in one line
    if once or not sys.stdout.isatty():
        time.sleep(min(interval, ONCE_INTERVAL_MAX_S))
        view.look()
        view.print()
    else:
        view.run()
