"""`runnel metrics`: what a broker measures, as a table, as JSON or as Prometheus reads it."""

import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from runnel.cli.output import AsJson, CommandError, examples, show_json, show_line, show_table
from runnel.cli.scraping import ReadyFile, UnansweredError, Url, metrics_url, scrape_text

if TYPE_CHECKING:  # other commands start without these
    from runnel.cli.exposition import Scrape
    from runnel.cli.rates import Interval

INTERVAL_MIN_S: Final = 0.1
INTERVAL_MAX_S: Final = 3600.0
TOLD_S_MAX: Final = 5.0  # a broker tells of a topic it has just made within a second or two
AGAIN_S: Final = 0.2
COLUMNS: Final = ("metric", "labels", "value", "now")
METRICS_EXAMPLES: Final = examples(
    "runnel metrics",
    "runnel metrics group_lag",
    "runnel metrics request --watch",
    "runnel metrics --json | jq '.metrics[].name'",
    "runnel metrics --prometheus > scrape.txt",
)


def metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Only metrics whose name has one of these in it."),
    ] = None,
    url: Url = None,
    ready_file: ReadyFile = None,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            "-i",
            metavar="SECONDS",
            help="Between the two looks that rates come from; 0 looks once and shows none.",
        ),
    ] = 1.0,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", metavar="", help="Go on until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
    prometheus: Annotated[
        bool,
        typer.Option("--prometheus", metavar="", help="Print what Prometheus would read."),
    ] = False,
) -> None:
    """Show what a broker measures now: totals, and rates over a second."""
    from runnel.cli.metrics_views import document
    from runnel.cli.rates import Interval

    _ensure_sensible(interval, watch, as_json, prometheus)
    found = metrics_url(url, ready_file)
    wanted = names or []
    if prometheus:
        text, scrape, families = _look(found, wanted)
        show_line("\n".join(_lines_about(text, families, scrape)) if wanted else text.rstrip("\n"))
        return
    before: Scrape | None = None
    looked_at = 0.0
    while True:
        _, after, families = _look(found, wanted)
        now = time.monotonic()
        if interval == 0 or before is not None:
            span = Interval(before, after, now - looked_at)
            if as_json:
                show_json(document(span, families, found))
            else:
                _show(span, families, wanted, clear=watch and sys.stdout.isatty())
            sys.stdout.flush()
            if not watch:
                return
        before, looked_at = after, now
        time.sleep(interval)


def read(url: str, text: str, wanted: Iterable[str] | None = None) -> "Scrape":
    """The scrape. Raises UnansweredError for what is none."""
    from runnel.cli.exposition import ExpositionError, parse

    try:
        scrape = parse(text, None if wanted is None else frozenset(wanted))
    except ExpositionError as error:
        raise UnansweredError(url, f"this is no Prometheus text ({error})") from None
    if not scrape.kinds:
        raise UnansweredError(url, "there are no metrics in its answer")
    return scrape


def _ensure_sensible(interval: float, watch: bool, as_json: bool, prometheus: bool) -> None:
    if prometheus and (watch or as_json):
        raise CommandError("--prometheus prints once, and as it is: leave --watch and --json out.")
    if watch and interval == 0:
        raise CommandError("--watch needs an --interval above 0.")
    ensure_interval(interval, may_be_zero=True)


def ensure_interval(interval: float, *, may_be_zero: bool = False) -> None:
    if interval == 0 and may_be_zero:
        return
    if not INTERVAL_MIN_S <= interval <= INTERVAL_MAX_S:
        raise CommandError(
            f"--interval: from {INTERVAL_MIN_S:g} to {INTERVAL_MAX_S:g} seconds, not {interval:g}."
        )


def _look(url: str, names: Sequence[str]) -> tuple[str, "Scrape", list[str]]:
    """The text, what it says, and the metrics in it that have one of the names in theirs."""
    from runnel.cli.metrics_views import chosen
    from runnel.exporter.catalogue import METRICS

    until_s = time.monotonic() + TOLD_S_MAX
    while True:
        text = scrape_text(url)
        scrape = read(url, text)
        if families := chosen(scrape.kinds, names):
            return text, scrape, families
        asked = " or ".join(map(repr, names))
        if not chosen((metric.name for metric in METRICS), names):
            raise CommandError(
                f"No metric has {asked} in its name: 'runnel metrics' shows all of them."
            )
        if time.monotonic() > until_s:
            raise CommandError(
                f"There is nothing here yet for {asked} to tell about: no topic or group, say."
            )
        time.sleep(AGAIN_S)


def _show(span: "Interval", families: Sequence[str], names: Sequence[str], clear: bool) -> None:
    from runnel.cli.metrics_views import by_subject, lines_of

    if clear:
        sys.stdout.write("\x1b[H\x1b[2J")
    rows: list[tuple[str, ...]] = []
    for subject, members in by_subject(families):
        if rows:
            rows.append(("",) * len(COLUMNS))
        rows.append((subject.upper(), *("",) * (len(COLUMNS) - 1)))
        for family in members:
            rows += (line.cells for line in lines_of(span, family, whole=bool(names)))
    show_table(COLUMNS, rows)


def _lines_about(text: str, families: Sequence[str], scrape: "Scrape") -> list[str]:
    """The lines of the text that belong to these metrics, as they are."""
    wanted = {name for family in families for name in scrape.samples_of(family)}
    wanted.update(families)
    return [line for line in text.split("\n") if _subject(line) in wanted]


def _subject(line: str) -> str:
    """The name that a sample or a comment of the exposition is about."""
    if line.startswith("#"):
        return (line.split(None, 3)[2:3] or [""])[0]
    return line.partition("{")[0].partition(" ")[0]
