"""`runnel pipeline backfill|replay|compact`: what is done to a table besides its stream.

Only the commands' options stand here: whatever they need is imported when one runs.
"""

from typing import Annotated

import typer

from runnel.cli.output import AsJson, Yes, examples
from runnel.cli.pipeline_options import Pipeline, StateDir, Table

BACKFILL_EXAMPLES = examples(
    "runnel pipeline backfill orders --from 2026-01-30 --to 2026-01-31",
    "runnel pipeline backfill orders --from -7d --yes",
)
REPLAY_EXAMPLES = examples(
    "runnel pipeline replay orders --to orders-again",
    "runnel pipeline replay lake/orders --to orders-again --from -2h --rate 1000",
)
COMPACT_EXAMPLES = examples(
    "runnel pipeline compact orders",
    "runnel pipeline compact orders --dry-run",
    "runnel pipeline compact lake/orders --target-file-bytes 256MB --expire-after 1d",
)


def backfill(
    pipeline: Pipeline,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Records of this time or later: 2026-01-31T12:00, or -7d.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Up to this time; else to where the stream is."),
    ] = None,
    chunk_records: Annotated[
        int, typer.Option("--chunk-records", metavar="N", min=1, help="Records in one commit.")
    ] = 500_000,
    state_dir: StateDir = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Records of a time range that the table does not have; started again it goes on."""
    from runnel.cli import pipeline_backfill

    pipeline_backfill.backfill(
        pipeline, from_, to, chunk_records, state_dir, yes=yes, as_json=as_json
    )


def replay(
    table: Table,
    to: Annotated[
        str, typer.Option("--to", metavar="TOPIC", help="Where rows go.", show_default=False)
    ],
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            envvar="RUNNEL_BOOTSTRAP_SERVER",
            metavar="HOST:PORT",
            help="Any broker of the cluster; the pipeline's unless told, else localhost:9092.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Rows of this time or later, by `timestamp`."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Rows of before this time.")
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", metavar="N", min=0, help="Rows a second; 0: no limit.")
    ] = 0.0,
    keep_partitions: Annotated[
        bool,
        typer.Option("--keep-partitions", metavar="", help="To the partition that each was in."),
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """A table's rows back to a topic, each once: key, value, headers, timestamp, old place."""
    from runnel.cli import pipeline_replay

    pipeline_replay.replay(
        table,
        to,
        bootstrap_server,
        from_,
        until,
        rate,
        state_dir,
        keep_partitions=keep_partitions,
        as_json=as_json,
    )


def compact(
    table: Table,
    target_file_bytes: Annotated[
        str | None,
        typer.Option(
            "--target-file-bytes",
            metavar="SIZE",
            help="What files are to have: 128MB unless the pipeline says otherwise.",
        ),
    ] = None,
    expire_after: Annotated[
        str | None,
        typer.Option(
            "--expire-after",
            metavar="SPAN",
            help="How long what was replaced stays: 7d unless told, or 'never' to remove nothing.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Only say what would be done.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Small files become large ones, and old ones go; the pipeline may run meanwhile."""
    from runnel.cli import pipeline_compact

    pipeline_compact.compact(
        table, target_file_bytes, expire_after, dry_run=dry_run, as_json=as_json
    )
