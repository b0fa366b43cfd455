"""What all commands share: their common options, how they show results, and how they fail.

Results go to standard output: JSON when `--json` asks for it, tables with colours on a terminal,
plain aligned columns elsewhere. All else (progress, questions, errors) goes to standard error, so
that the output of a command can always be piped into another.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Final, Protocol

import typer

EXIT_FAILED: Final = 1  # it was tried, and it did not work
EXIT_REFUSED: Final = 2  # bad usage, or the broker refused; nothing has changed
EXIT_INTERRUPTED: Final = 130
DEFAULT_BOOTSTRAP: Final = "localhost:9092"
TABLE_CELL_MAX: Final = 200  # characters of a cell on a terminal

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="RUNNEL_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="Any broker of the cluster; several with commas.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON, for programs, instead of a table.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do it without asking.")]
ValidateOnly = Annotated[
    bool,
    typer.Option("--validate-only", metavar="", help="Only ask whether it would be accepted."),
]
Cell = str | int | float | bool | None


class CommandError(Exception):
    """What a user can mend. The message says what went wrong, and what to do next."""

    def __init__(self, message: str, status: int = EXIT_REFUSED) -> None:
        super().__init__(message)
        self.status = status


class Advance(Protocol):
    def __call__(self, done: float) -> None: ...


def sentence(text: str) -> str:
    """With a mark at its end, so that another sentence can follow."""
    return text if text.endswith(("?", "!")) else f"{text.rstrip('.')}."


def examples(*lines: str) -> str:
    """The epilog of a command's help; the framework joins lines, but keeps paragraphs apart."""
    return "\n\n".join(["Examples:", *(f"$ {line}" for line in lines)]).replace("[", "\\[")


def show_json(document: object) -> None:
    """One JSON document, or one line of a stream of them."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "") -> None:
    """Rows under their headings. Numbers stand to the right."""
    texts = [[cell_text(cell) for cell in row] for row in rows]
    numeric = [
        bool(rows) and all(type(row[at]) in (int, float) for row in rows)
        for at in range(len(columns))
    ]
    if sys.stdout.isatty():
        _rich_table(columns, texts, numeric, title)
    else:
        _plain_table([name.upper() for name in columns], texts, numeric)


def show_texts(
    columns: Sequence[str], texts: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> None:
    """The same of cells that are text already, under headings as they are written."""
    if sys.stdout.isatty():
        _rich_table(columns, texts, numeric, "")
    else:
        _plain_table(columns, texts, numeric)


def show_fields(fields: Mapping[str, Cell]) -> None:
    """One thing with its properties, one to a line."""
    width = max(map(len, fields), default=0)
    for name, cell in fields.items():
        sys.stdout.write(f"{name:<{width}}  {cell_text(cell)}".rstrip() + "\n")


def show_line(text: str) -> None:
    """What has been done, for a person."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A remark beside the result: standard error."""
    sys.stdout.flush()
    sys.stderr.write(text + "\n")


def cell_text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def confirm(question: str, yes: bool) -> None:
    """Returns when the answer is yes. Without a terminal there is nobody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} There is no terminal to answer at: add --yes to do it.")
    if not typer.confirm(question, err=True):
        raise CommandError("Nothing was changed.", EXIT_FAILED)


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Advance]:
    """A bar on standard error if a person watches it; yields what to call with how much is done.

    Ctrl-C ends the block with KeyboardInterrupt, which `app.main` turns into the exit status.
    """
    if not sys.stderr.isatty():
        yield _nothing_shown
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)

        def advance(done: float) -> None:
            bar.update(task, completed=done)

        yield advance


def _nothing_shown(done: float) -> None:
    """Nobody watches."""


def _plain_table(
    columns: Sequence[str], texts: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> None:
    lines = [list(columns), *texts]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    for line in lines:
        cells = [
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, numeric, strict=True)
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _rich_table(
    columns: Sequence[str],
    texts: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    title: str,
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for name, number in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for line in texts:
        table.add_row(*(Text(text[:TABLE_CELL_MAX]) for text in line))
    Console().print(table)
