"""What more than one command of `runnel pipeline` takes."""

from pathlib import Path
from typing import Annotated

import typer

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
Table = Annotated[
    str,
    typer.Argument(
        metavar="NAME|TABLE", help="A pipeline, or a table's folder.", show_default=False
    ),
]
