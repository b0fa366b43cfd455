"""`runnel pipeline`: records from topics to tables and topics, as a YAML file says, on Spark.

Only the commands' options stand here: whatever they need is imported when one runs.
"""

from pathlib import Path
from typing import Annotated

import typer

from runnel.cli import pipeline_dlq
from runnel.cli.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, CommandError, Yes, examples

Pipeline = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE", help="A file, or the name of one in ./pipelines.", show_default=False
    ),
]
SomePipeline = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME|FILE]", help="All of ./pipelines unless one is named.", show_default=False
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        envvar="RUNNEL_PIPELINE_STATE",
        metavar="FOLDER",
        help="Where pipelines keep their state; .runnel/pipelines beside the files unless told.",
        show_default=False,
    ),
]
OnSpark = Annotated[
    bool, typer.Option("--spark", metavar="", help="Start Spark as well, and ask it (seconds).")
]

app = typer.Typer(
    help="Records from topics to tables and topics, as a YAML file says, on Spark.",
    epilog=examples(
        "runnel pipeline init orders",
        "runnel pipeline validate orders",
        "runnel pipeline run orders --every 1m",
        "runnel pipeline status",
    ),
    no_args_is_help=True,
)


@app.command(
    epilog=examples(
        "runnel pipeline init orders",
        "runnel pipeline init --list",
        "runnel pipeline init clicks --template table --topic web-clicks",
        "runnel pipeline init shop --declarative",
    )
)
def init(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Of the pipeline.", show_default=False)
    ] = None,
    template: Annotated[
        str, typer.Option("--template", "-t", metavar="KIND", help="What kind it is to be.")
    ] = "table",
    list_kinds: Annotated[
        bool, typer.Option("--list", metavar="", help="Only show the kinds that there are.")
    ] = False,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="TOPIC", help="What it reads, instead of the example."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write over files that are there.")
    ] = False,
    declarative: Annotated[
        bool,
        typer.Option(
            "--declarative",
            metavar="",
            help="A project of Spark Declarative Pipelines instead, in a folder NAME.",
        ),
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Write pipelines/NAME.yml, with comments, to be edited."""
    from runnel.cli import pipeline_declarative, pipeline_init

    if list_kinds:
        pipeline_init.show_kinds(as_json=as_json)
    elif name is None:
        raise CommandError("which pipeline? Give it a name: 'runnel pipeline init orders'.")
    elif declarative:
        pipeline_declarative.init(name, topic, bootstrap)
    else:
        pipeline_init.write(name, template, topic, force=force)


@app.command(name="list", epilog=examples("runnel pipeline list", "runnel pipeline list --json"))
def list_(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """The pipelines in ./pipelines: what they do, and how they fare."""
    from runnel.cli import pipeline_state

    pipeline_state.show_all(state_dir, as_json=as_json)


@app.command(
    epilog=examples(
        "runnel pipeline validate",
        "runnel pipeline validate orders",
        "runnel pipeline validate orders --spark",
        "runnel pipeline validate pipelines/orders.yml --offline",
    )
)
def validate(
    pipeline: SomePipeline = None,
    offline: Annotated[
        bool, typer.Option("--offline", metavar="", help="Ask no broker: the file alone.")
    ] = False,
    spark: OnSpark = False,
    as_json: AsJson = False,
) -> None:
    """Say all that is wrong with a pipeline: status 0 if nothing is, else 1."""
    from runnel.cli import pipeline_validate

    pipeline_validate.validate(pipeline, offline=offline, spark=spark, as_json=as_json)


@app.command(
    epilog=examples(
        "runnel pipeline run orders",
        "runnel pipeline run pipelines/orders.yml --every 30s",
        "runnel pipeline run orders --continuous --json",
    )
)
def run(
    pipeline: Pipeline,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Take what is there, then end.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="SPAN", help="Look so often: 30s, 1m, 1h.", show_default=False
        ),
    ] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", metavar="", help="Batch after batch, without a pause.")
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline. It goes on where it stopped; Ctrl-C ends it after the batch in hand."""
    from runnel.cli import pipeline_declarative as declarative
    from runnel.cli.pipeline_run import run as run_pipeline

    asked = ("once" if once else "", every, "continuous" if continuous else "")
    given = [text for text in asked if text]
    if len(given) > 1:
        raise CommandError("give one of --once, --every and --continuous.")
    if declarative.is_project(pipeline):
        declarative.run(pipeline, given[0] if given else None)
        return
    run_pipeline(pipeline, given[0] if given else None, state_dir, as_json=as_json)


@app.command(
    epilog=examples(
        "runnel pipeline status",
        "runnel pipeline status orders --watch",
        "runnel pipeline status orders --json | jq .lag",
    )
)
def status(
    pipeline: SomePipeline = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", metavar="", help="Look again every second.")
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """How a pipeline fares: from any terminal, and after a crash as well."""
    from runnel.cli import pipeline_state

    pipeline_state.show(pipeline, state_dir, watch=watch, as_json=as_json)


@app.command(epilog=examples("runnel pipeline stop orders", "runnel pipeline stop orders --force"))
def stop(
    pipeline: Pipeline,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Kill it: nothing is lost, it starts over.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for its end.")
    ] = 300.0,
    state_dir: StateDir = None,
) -> None:
    """End a pipeline that runs, after the batch in hand."""
    from runnel.cli import pipeline_stop

    pipeline_stop.stop(pipeline, state_dir, force=force, timeout_s=timeout)


@app.command(
    epilog=examples(
        "runnel pipeline reset orders --to earliest",
        "runnel pipeline reset orders --to 2026-01-31T12:00",
        "runnel pipeline reset orders --to -2h --yes",
        "runnel pipeline reset orders --to offsets.json",
    )
)
def reset(
    pipeline: Pipeline,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="earliest, latest, a time, '-2h', or a JSON file with offsets by partition.",
            show_default=False,
        ),
    ],
    state_dir: StateDir = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Begin elsewhere: says what would be read twice or skipped, and asks."""
    from runnel.cli import pipeline_reset

    pipeline_reset.reset(pipeline, to, state_dir, yes=yes, as_json=as_json)


@app.command(
    epilog=examples(
        "runnel pipeline backfill orders --from 2026-01-30 --to 2026-01-31",
        "runnel pipeline backfill orders --from -7d --yes",
    )
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


@app.command(
    epilog=examples(
        "runnel pipeline replay orders --to orders-again",
        "runnel pipeline replay lake/orders --to orders-again --from -2h --rate 1000",
    )
)
def replay(
    table: Annotated[
        str,
        typer.Argument(
            metavar="NAME|TABLE", help="A pipeline, or a table's folder.", show_default=False
        ),
    ],
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


@app.command(
    epilog=examples(
        "runnel pipeline compact orders",
        "runnel pipeline compact orders --dry-run",
        "runnel pipeline compact lake/orders --target-file-bytes 256MB --expire-after 1d",
    )
)
def compact(
    table: Annotated[
        str,
        typer.Argument(
            metavar="NAME|TABLE", help="A pipeline, or a table's folder.", show_default=False
        ),
    ],
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


app.add_typer(pipeline_dlq.app, name="dlq")


@app.command(epilog=examples("runnel pipeline explain orders", "runnel pipeline explain orders -s"))
def explain(
    pipeline: Pipeline,
    spark: Annotated[
        bool, typer.Option("--spark", "-s", metavar="", help="Spark's physical plan as well.")
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """What a pipeline does, in words: what it reads and writes, what holds, where its state is."""
    from runnel.cli import pipeline_explain

    pipeline_explain.explain(pipeline, state_dir, spark=spark, as_json=as_json)
