"""`runnel group reset`: set where a group goes on reading. Shows the plan; `--execute` does it."""

import time
from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import typer

from runnel.cli.connecting import connected
from runnel.cli.moments import Place, duration_ms, offsets_at, place_at, time_of
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandError,
    Yes,
    confirm,
    examples,
    note,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.partitions import partitions_of
from runnel.client.admin import EARLIEST, LATEST, list_offsets
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.group_offsets import commit_offsets, committed_offsets
from runnel.client.groups import describe_group
from runnel.errors import ErrorCode
from runnel.types import TopicPartition

RESET_EXAMPLES: Final = examples(
    "runnel group reset billing --topic orders --to-earliest",
    "runnel group reset billing --topic orders:0,1 --to-offset 42 --execute",
    "runnel group reset billing --all-topics --to-time 2026-01-31T12:00 --execute --yes",
    "runnel group reset billing --all-topics --shift-by -100",
)
WAYS: Final = "--to-earliest, --to-latest, --to-offset, --to-time, --by-duration or --shift-by"


class Change(NamedTuple):
    topic: str
    partition: int
    old: int | None
    new: int
    asked: int  # what was asked for, which may lie outside of the partition

    @property
    def is_bounded(self) -> bool:
        return self.new != self.asked


def reset(
    name: Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:PARTITIONS]",
            help="What to reset: orders, orders:0,1 or orders:0-3; can be repeated.",
        ),
    ] = None,
    all_topics: Annotated[
        bool,
        typer.Option("--all-topics", metavar="", help="All for which the group has offsets."),
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", metavar="", help="The oldest record that is kept.")
    ] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", metavar="", help="What comes from now on.")
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="This offset in every partition.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(
            "--to-time",
            metavar="WHEN",
            help="The first record at or after 2026-01-31T12:00, '-2h', or @ and milliseconds.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration", metavar="DURATION", help="As long ago: 90s, 15m, 2h, 7d or PT1H30M."
        ),
    ] = None,
    shift_by: Annotated[
        int | None,
        typer.Option("--shift-by", metavar="N", help="So many on from where it is, or -N back."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", metavar="", help="Do it; otherwise it is only shown.")
    ] = False,
    yes: Yes = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Set where a group goes on reading. Without --execute it only shows what would change.

    The group must not have members: stop its consumers first. A group that is not there is made.
    """
    if all_topics == bool(topic):
        raise CommandError("Say what to reset: --topic TOPIC[:PARTITIONS], or --all-topics.")
    place = _place(to_earliest, to_latest, to_offset, to_time, by_duration, shift_by)
    with connected(bootstrap_server) as cluster:
        is_new = _ensure_inactive(cluster, name)
        committed = {at: row.offset for at, row in committed_offsets(cluster, name).items()}
        partitions = partitions_of(cluster, "--topic", topic) if topic else sorted(committed)
        if not partitions:
            raise CommandError(
                f"group {name} has no offsets to reset: name what it shall read with --topic."
            )
        changes = _planned(cluster, partitions, committed, place, shift_by)
        if not as_json:
            _show(changes)
        if execute:
            confirm(f"Reset {_partitions(changes)} of {name}?", yes)
            wanted = {TopicPartition(row.topic, row.partition): row.new for row in changes}
            commit_offsets(cluster, name, wanted)
    if as_json:
        show_json(_document(name, changes, execute))
    elif execute:
        show_line(f"reset {_partitions(changes)} of {name}")
    else:
        made = f"group {name} is not there yet and would be made; " if is_new else ""
        note(f"{made}nothing was changed: add --execute to do it")


def _place(
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_time: str | None,
    by_duration: str | None,
    shift_by: int | None,
) -> Place | None:
    """Where to; None for a shift. Raises CommandError unless exactly one is given."""
    now_ms = time.time_ns() // 1_000_000
    given: list[Place | None] = [
        *([Place(edge=EARLIEST)] if to_earliest else ()),
        *([Place(edge=LATEST)] if to_latest else ()),
        *([Place(offset=to_offset)] if to_offset is not None else ()),
        *([None] if shift_by is not None else ()),
    ]
    if to_time is not None:
        time_ms = time_of(to_time, now_ms)
        if time_ms is None:
            raise CommandError(
                f"--to-time: {to_time!r} is no time; write 2026-01-31T12:00, '-2h' or"
                " @1767225600000."
            )
        given.append(place_at(time_ms))
    if by_duration is not None:
        given.append(place_at(now_ms - duration_ms("--by-duration", by_duration)))
    if len(given) != 1:
        raise CommandError(f"Say where to, in one way: {WAYS}.")
    return given[0]


def _ensure_inactive(cluster: Cluster, name: str) -> bool:
    """Whether the group is new. Raises CommandError while it has members, as Kafka's tool does."""
    try:
        group = describe_group(cluster, name)
    except RefusedError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return True
    if not group.is_inactive:
        raise CommandError(
            f"group {name} is {group.state}, with {len(group.members)} members: stop them first;"
            f" 'runnel group describe {name} --members' shows where they run."
        )
    return False


def _planned(
    cluster: Cluster,
    partitions: list[TopicPartition],
    committed: Mapping[TopicPartition, int],
    place: Place | None,
    shift_by: int | None,
) -> list[Change]:
    """No offset lies outside of its partition: what is too low or too high is moved to the edge."""
    changes: list[Change] = []
    for topic in dict.fromkeys(at.topic for at in partitions):
        indexes = [at.index for at in partitions if at.topic == topic]
        starts = list_offsets(cluster, topic, dict.fromkeys(indexes, EARLIEST))
        ends = list_offsets(cluster, topic, dict.fromkeys(indexes, LATEST))
        if place is None:
            wanted = _shifted(topic, indexes, committed, shift_by or 0)
        elif place.offset is not None:
            wanted = dict.fromkeys(indexes, place.offset)
        else:
            wanted = offsets_at(cluster, topic, place, indexes)
        for index in indexes:
            old = committed.get(TopicPartition(topic, index))
            new = min(max(wanted[index], starts[index]), ends[index])
            changes.append(Change(topic, index, old, new, wanted[index]))
    return changes


def _shifted(
    topic: str, indexes: list[int], committed: Mapping[TopicPartition, int], shift_by: int
) -> dict[int, int]:
    found: dict[int, int] = {}
    for index in indexes:
        at = TopicPartition(topic, index)
        if at not in committed:
            raise CommandError(
                f"{at} has no committed offset that could be shifted: leave it out, or use"
                " --to-offset."
            )
        found[index] = committed[at] + shift_by
    return found


def _show(changes: list[Change]) -> None:
    rows = [
        (row.topic, row.partition, "-" if row.old is None else row.old, row.new) for row in changes
    ]
    show_table(("topic", "partition", "old", "new"), rows)
    bounded = [f"{row.topic}-{row.partition}" for row in changes if row.is_bounded]
    if bounded:
        note(f"moved to the nearest offset that is there: {', '.join(bounded)}")


def _partitions(changes: list[Change]) -> str:
    return "1 partition" if len(changes) == 1 else f"{len(changes)} partitions"


def _document(name: str, changes: list[Change], executed: bool) -> dict[str, object]:
    rows = [
        {
            "topic": row.topic,
            "partition": row.partition,
            "old_offset": row.old,
            "new_offset": row.new,
        }
        for row in changes
    ]
    return {"group": name, "executed": executed, "partitions": rows}
