"""`runnel pipeline`: records from topics to tables and topics, as a YAML file says, on Spark."""

from pathlib import Path
from typing import Annotated

import typer

from runnel.cli import pipeline_declarative as declarative
from runnel.cli.output import AsJson, CommandError, examples

File = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE", help="A file, or the name of one in ./pipelines.", show_default=False
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        envvar="RUNNEL_PIPELINE_STATE",
        help="Where pipelines keep their state; .runnel/pipelines beside the files unless told.",
    ),
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
        "runnel pipeline run orders",
        "runnel pipeline run pipelines/orders.yml --every 30s",
        "runnel pipeline run orders --continuous --json",
    )
)
def run(
    pipeline: File,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Take what is there, then end.")
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", metavar="SPAN", help="Look so often: 30s, 1m, 1h.")
    ] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", metavar="", help="Batch after batch, without a pause.")
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline. It goes on where it stopped; Ctrl-C ends it after the batch in hand."""
    from runnel.cli.pipeline_run import run as run_pipeline

    asked = ("once" if once else "", every, "continuous" if continuous else "")
    given = [text for text in asked if text]
    if len(given) > 1:
        raise CommandError("give one of --once, --every and --continuous.")
    if declarative.is_project(pipeline):
        declarative.run(pipeline, given[0] if given else None)
        return
    run_pipeline(pipeline, given[0] if given else None, state_dir, as_json=as_json)
