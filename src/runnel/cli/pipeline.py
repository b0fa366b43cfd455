"""`runnel pipeline`: records from topics to tables and topics, as a YAML file says, on Spark.

Only the commands' options stand here: whatever they need is imported when one runs.
"""

from typing import Annotated

import typer

from runnel.cli import pipeline_dlq
from runnel.cli.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, CommandError, Yes, examples
from runnel.cli.pipeline_on_tables import (
    BACKFILL_EXAMPLES,
    COMPACT_EXAMPLES,
    REPLAY_EXAMPLES,
    backfill,
    compact,
    replay,
)
from runnel.cli.pipeline_options import Pipeline, SomePipeline, StateDir

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


app.command(epilog=BACKFILL_EXAMPLES)(backfill)
app.command(epilog=REPLAY_EXAMPLES)(replay)
app.command(epilog=COMPACT_EXAMPLES)(compact)
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
