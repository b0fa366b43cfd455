"""`runnel consume`: print the records of a topic, without a trace, or for a group."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

import typer

from runnel.cli.connecting import connected
from runnel.cli.group_place import GroupPlace
from runnel.cli.moments import Place, offsets_at, place_of
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandError,
    examples,
    note,
    progress,
)
from runnel.cli.record_text import TABLE_HEAD, Show, shower
from runnel.client.admin import LATEST, list_offsets
from runnel.client.cluster import Cluster
from runnel.client.reading import Found, Reader

CONSUME_EXAMPLES: Final = examples(
    "runnel consume orders",
    "runnel consume orders --from latest --follow",
    "runnel consume orders --from -1h --until -30m --json",
    "runnel consume orders --from -10 --format table",
    "runnel consume orders --group billing --committed",
    "runnel consume orders --partition 0 --from 42 --count 1 --format '%k: %v\\n'",
)


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What to read.")],
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            "-s",
            metavar="PLACE",
            help="Where to begin: 'beginning', 'latest', an offset, -N for the last N of each"
            " partition, '-5m' ago, a time such as 2026-01-31T12:00, or @ and milliseconds.",
        ),
    ] = "beginning",
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            "-u",
            metavar="PLACE",
            help="Where to end, not included; written as --from. Else the end as it is now.",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Only this partition; can be repeated."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", metavar="", help="Go on with what comes, until Ctrl-C."),
    ] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after this many records.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="Go on where this group stopped (else at --from), and commit what is printed.",
        ),
    ] = None,
    committed: Annotated[
        bool,
        typer.Option(
            "--committed",
            metavar="",
            help="Only what is committed: no aborted or open transactions.",
        ),
    ] = False,
    how: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="value, json, table, or a text with %k key, %v value, %h headers, %p partition,"
            " %o offset, %T timestamp, %t topic, %K and %S lengths, \\n, \\t.",
        ),
    ] = "value",
    null: Annotated[
        str, typer.Option("--null", metavar="TEXT", help="What stands for a null key or value.")
    ] = "NULL",
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Print the records of a topic: values by default, to the end as it is now.

    Without --group nothing is committed and nobody else is disturbed.
    """
    if follow and until is not None:
        raise CommandError("--follow and --until contradict each other: leave one out.")
    now_ms = time.time_ns() // 1_000_000
    start = place_of("--from", begin, now_ms)
    end = Place(edge=LATEST) if until is None else place_of("--until", until, now_ms)
    how = "json" if as_json else how
    show = shower(how, topic, null, sys.stdout.isatty())
    with connected(bootstrap_server) as cluster:
        partitions = sorted(partition or _partitions(cluster, topic))
        starts = offsets_at(cluster, topic, start, partitions)
        ends = None if follow else offsets_at(cluster, topic, end, partitions)
        if committed or until is not None:  # a place beyond the end would be waited for
            latest = dict.fromkeys(partitions, LATEST)
            bounds = list_offsets(cluster, topic, latest, committed=committed)
            starts, ends = _within(starts, bounds), ends and _within(ends, bounds)
        place = None if group is None else GroupPlace(cluster, group, topic)
        if place is not None:
            starts = place.begin(starts)
        if how == "table":
            sys.stdout.buffer.write(TABLE_HEAD)
        reader = Reader(cluster, topic, starts, ends, committed=committed)
        pages = _watched(reader, starts, ends, topic)
        shown = _printed(reader, pages, show, count, place)
    if not shown and sys.stderr.isatty():
        note(f"no records there; --from beginning shows all of {topic}, --follow waits for more")


def _printed(
    reader: Reader,
    pages: Iterator[list[Found]],
    show: Show,
    count: int | None,
    place: GroupPlace | None,
) -> int:
    """How many records; what was printed is committed, however it ends."""
    out, shown = sys.stdout.buffer, 0
    try:
        for page in pages:
            wanted = page[: None if count is None else count - shown]
            for found in wanted:
                out.write(show(found.partition, found.record))
            shown += len(wanted)
            out.flush()
            if place is not None:
                place.shown(reader.positions)
                if len(wanted) < len(page):
                    place.shown({page[0].partition: wanted[-1].record.offset + 1})
            if count is not None and shown >= count:
                break
    except (KeyboardInterrupt, BrokenPipeError):
        if place is not None:
            place.commit()
        raise
    if place is not None:
        place.commit()
    return shown


def _within(offsets: Mapping[int, int], bounds: Mapping[int, int]) -> dict[int, int]:
    return {at: min(offset, bounds[at]) for at, offset in offsets.items()}


def _partitions(cluster: Cluster, topic: str) -> list[int]:
    return [row.partition_index for row in cluster.topic(topic).partitions]


def _watched(
    reader: Reader, starts: dict[int, int], ends: dict[int, int] | None, topic: str
) -> Iterator[list[Found]]:
    """The pages, with a bar for the person who redirects a long output into a file."""
    if ends is None or sys.stdout.isatty():
        yield from reader.pages()
        return
    total = sum(max(0, ends[at] - starts[at]) for at in ends)
    with progress(f"reading {topic}", total) as advance:
        for page in reader.pages():
            yield page
            left = reader.next_offsets
            advance(total - sum(ends[at] - offset for at, offset in left.items()))
