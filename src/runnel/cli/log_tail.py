"""`runnel logs tail`: the last lines of a topic of logs, and those that come."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from runnel.cli.connecting import connected
from runnel.cli.log_options import Field, Level, Service, Since, Topic, filters_of, opened_source
from runnel.cli.log_view import Printer
from runnel.cli.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, examples, note, progress

if TYPE_CHECKING:
    from runnel.client.cluster import Cluster
    from runnel.logs.filters import LogRecord

LINES: Final = 20
LINES_MAX: Final = 1_000_000
TAIL_EXAMPLES: Final = examples(
    "runnel logs tail app-logs",
    "runnel logs tail app-logs --follow --level warning",
    "runnel logs tail app-logs --since 10m --service billing",
    "runnel logs tail app-logs --text 'payment failed' --field user=7 --json",
)


def tail(
    topic: Topic,
    lines: Annotated[
        int | None,
        typer.Option(
            "--lines",
            "-n",
            min=0,
            max=LINES_MAX,
            help=f"Show so many of the last lines.  [default: {LINES}, or all with --since]",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", metavar="", help="Go on with what comes, until Ctrl-C."),
    ] = False,
    level: Level = None,
    service: Service = None,
    field: Field = None,
    text: Annotated[
        str,
        typer.Option(
            "--text", "-t", metavar="QUERY", help="Only with these words, as 'logs search' has it."
        ),
    ] = "",
    since: Since = None,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show the last lines of a topic of logs, in the order of their time.

    Records that are no JSON are shown as text.
    """
    from runnel.logs.search import search

    filters = filters_of(text, level, service, field, since)
    limit = lines if lines is not None else (LINES if since is None else LINES_MAX)
    printer = Printer(topic, as_json=as_json)
    with opened_source(topic, bootstrap_server, None) as source:
        bounds = source.bounds()
        total = sum(span.end - span.start for span in bounds.values())
        ends = {at: span.end for at, span in bounds.items()}
        if limit:
            with progress(f"reading {topic}", total) as advance:
                found = search(filters, index=None, source=source, limit=limit, advance=advance)
            ends = found.ends  # it has looked again, and what has come meanwhile is shown here
            for hit in found.hits:
                printer.show(hit.record, hit.line)
            if not found.hits and not follow and sys.stderr.isatty():
                note(f"no such lines in {topic}; --follow waits for more")
    if follow:
        with connected(bootstrap_server) as cluster:
            for record in _coming(cluster, topic, ends):
                line = filters.found(record)
                if line is not None:
                    printer.show(record, line)


def _coming(cluster: "Cluster", topic: str, ends: dict[int, int]) -> "Iterator[LogRecord]":
    """What is written from there on; output goes out whenever there is nothing more for now."""
    from runnel.client.reading import Reader
    from runnel.logs.filters import LogRecord

    for page in Reader(cluster, topic, ends, committed=True).pages():
        for partition, record in page:
            if record.value:
                yield LogRecord(partition, record.offset, record.timestamp, record.value)
        sys.stdout.flush()
