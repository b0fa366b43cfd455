"""`runnel logs index`: the search index of a topic, built and kept up to date without Spark."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from runnel.cli.connecting import NoBrokerError
from runnel.cli.figures import size_text
from runnel.cli.log_options import (
    DataFolder,
    IndexFolder,
    Topic,
    failures_told,
    index_of,
    opened_source,
)
from runnel.cli.moments import duration_ms
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    examples,
    note,
    progress,
    show_json,
    show_line,
)

if TYPE_CHECKING:
    from runnel.logs.index import Index
    from runnel.logs.indexing import Indexed, Where

INDEX_EXAMPLES: Final = examples(
    "runnel logs index app-logs",
    "runnel logs index app-logs --follow --every 10s",
    "runnel logs index app-logs --rebuild --index /var/lib/runnel/logs",
)


def index(
    topic: Topic,
    index: IndexFolder = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", metavar="", help="Go on with what comes.")
    ] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="SPAN", help="With --follow: how often to look.")
    ] = "10s",
    rebuild: Annotated[
        bool, typer.Option("--rebuild", metavar="", help="Throw the index away and begin anew.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, max=8, help="At a time.  [default: one for each core]"),
    ] = None,
    data_dir: DataFolder = None,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Build the search index of a topic of logs, or bring it up to date.

    Only what is not indexed yet is read, and lines that the topic has deleted are dropped. For
    large topics there is the pipeline 'log-index' (runnel pipeline init --template log-index).
    """
    from runnel.logs.indexing import Where

    pause_ms = duration_ms("--every", every)
    there = index_of(index, topic)
    where = Where(topic, bootstrap_server, "" if data_dir is None else str(data_dir))
    with opened_source(topic, bootstrap_server, data_dir) as source:
        source.bounds()  # nothing is thrown away before the topic has been found
    if rebuild:
        there.remove()
    while True:
        try:
            done, seconds = _caught_up(there, where, processes)
            if done.lines or not follow:
                _tell(there, done, seconds, as_json)
        except NoBrokerError as error:  # it may be starting again
            if not follow:
                raise
            note(f"{error} Trying again in {every}.")
        if not follow:
            return
        sys.stdout.flush()
        time.sleep(pause_ms / 1000)


def _caught_up(there: "Index", where: "Where", processes: int | None) -> "tuple[Indexed, float]":
    from runnel.logs.indexing import catch_up, missing

    began = time.perf_counter()
    with failures_told():
        with where.opened() as source:
            total = sum(span.end - span.start for _, span in missing(there, source.bounds()))
        with progress(f"indexing {where.topic}", total) as advance:
            done = catch_up(there, where, processes=processes, done=advance)
    return done, time.perf_counter() - began


def _tell(there: "Index", done: "Indexed", seconds: float, as_json: bool) -> None:
    listed = there.listed()
    if as_json:
        show_json(
            {
                "topic": there.topic,
                "index": str(there.folder),
                "lines_added": done.lines,
                "lines_expired": done.expired_lines,
                "seconds": round(seconds, 3),
                "lines": listed.lines,
                "segments": len(listed.segments),
                "size_bytes": listed.size_bytes,
            }
        )
        return
    size, count = size_text(listed.size_bytes), len(listed.segments)
    segments = f"{count} segment{'' if count == 1 else 's'}"
    expired = f", {done.expired_lines:,} dropped" if done.expired_lines else ""
    show_line(
        f"{done.lines:,} lines added{expired} in {seconds:.1f} s; {there.folder} has"
        f" {listed.lines:,} lines in {segments}, {size}"
    )
