"""`runnel pipeline dlq show|replay|purge`: records that could not be read."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runnel.cli.output import (
    AsJson,
    Yes,
    confirm,
    examples,
    note,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.pipeline_files import home_of, load
from runnel.cli.pipeline_tables import failing, spark_failing, time_of

if TYPE_CHECKING:
    from runnel.pipelines.spec import Spec

Pipeline = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="A pipeline.", show_default=False)
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", envvar="RUNNEL_PIPELINE_STATE", help="Where pipelines keep their state."
    ),
]
VALUE_CHARACTERS = 60

app = typer.Typer(
    help="Records that a pipeline could not read: look at them, try them again, throw them away.",
    epilog=examples(
        "runnel pipeline dlq show orders",
        "runnel pipeline dlq replay orders",
        "runnel pipeline dlq purge orders --before -7d",
    ),
    no_args_is_help=True,
)


@app.command(
    epilog=examples(
        "runnel pipeline dlq show orders --limit 5", "runnel pipeline dlq show orders --json"
    )
)
def show(
    pipeline: Pipeline,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="The newest N, after the reasons.")
    ] = 10,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Why records were put aside, how many for each reason, and the newest of them."""
    from runnel.pipelines import dlq

    spec = _loaded(pipeline, state_dir)
    with failing(spec.name, "look"):
        rows = dlq.letters(spec)
    newest = rows[-limit:][::-1] if limit else []
    if as_json:
        reasons = dlq.reasons(rows)
        show_json({"count": len(rows), "reasons": reasons, "newest": [_plain(r) for r in newest]})
        return
    if not rows:
        show_line(f"{spec.name} has no dead letters")
        return
    counts = dlq.reasons(rows).most_common()
    show_table(["reason", "records"], [[reason, count] for reason, count in counts])
    show_table(
        ["place", "failed", "error", "value"],
        [
            [
                f"{row['topic']}-{row['partition']}@{row['offset']}",
                f"{row['failed_at']:%Y-%m-%d %H:%M:%S}",
                row["error"],
                _text(row["value"])[:VALUE_CHARACTERS],
            ]
            for row in newest
        ],
        title="newest",
    )


@app.command(
    epilog=examples(
        "runnel pipeline dlq replay orders",
        "runnel pipeline dlq replay orders --schema 'id BIGINT, amount STRING'",
    )
)
def replay(
    pipeline: Pipeline,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="DDL", help="Read values by this, not by decode.schema."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option("--sql", metavar="QUERY", help="Transform by this, not by transform."),
    ] = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Try all of them again: what passes goes to the table, exactly once; the rest stays."""
    from runnel.pipelines import dlq
    from runnel.pipelines.home import Home
    from runnel.pipelines.sparking import spark_for
    from runnel.pipelines.spec import Transform

    spec = _loaded(pipeline, state_dir)
    if schema is not None:
        spec = replace(spec, decode=replace(spec.decode, schema=schema))
    if sql is not None:
        spec = replace(spec, transform=Transform(sql=sql))
    home = home_of(spec, state_dir)
    notes = home.folder / "notes"
    own = Home(home.folder / "dlq")
    found = dlq.Replayed(0, 0, {})
    with failing(spec.name, "replay of dead letters"), own.claimed():
        notes.mkdir(exist_ok=True)
        if dlq.kept(spec) is not None:
            with spark_failing(spec), spark_for(spec, own) as spark:
                found = dlq.replay(spec, spark, notes, note)
    if as_json:
        show_json({"passed": found.passed, "stayed": found.failed, "reasons": found.reasons})
        return
    show_line(f"{spec.name}: {found.passed} went to the table, {found.failed} stay")
    for reason, count in found.reasons.items():
        note(f"{count}: {reason}")


@app.command(
    epilog=examples(
        "runnel pipeline dlq purge orders --before -7d",
        "runnel pipeline dlq purge orders --reason 'not JSON' --yes",
    )
)
def purge(
    pipeline: Pipeline,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="Those that failed before: -7d, or a time."),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Those whose reason has this in it."),
    ] = None,
    state_dir: StateDir = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Throw dead letters away: all, or those of a time or reason. The topic keeps its records."""
    from runnel.pipelines import dlq

    spec = _loaded(pipeline, state_dir)
    before_ms = time_of("--before", before)
    which = "all dead letters" if before is None and reason is None else "these dead letters"
    confirm(f"Throw away {which} of {spec.name}?", yes)
    with failing(spec.name, "purge"):
        count = dlq.purge(spec, before_ms, reason)
    if as_json:
        show_json({"purged": count})
    else:
        show_line(f"{spec.name}: {count} dead letters thrown away")


def _loaded(pipeline: str, state_dir: Path | None) -> "Spec":
    from runnel.pipelines import dead_letters

    spec = load(pipeline)
    return dead_letters.as_run(spec, home_of(spec, state_dir))


def _plain(row: "dict[str, Any]") -> "dict[str, Any]":
    return {
        name: _text(value)
        if isinstance(value, bytes)
        else value.isoformat()
        if isinstance(value, datetime)
        else [[each["key"], _text(each["value"])] for each in value]
        if isinstance(value, list)
        else value
        for name, value in row.items()
    }


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode(errors="backslashreplace")
