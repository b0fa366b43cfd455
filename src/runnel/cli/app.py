"""The commands of `runnel` but for `serve` and `health`, only listed here: see `__main__`.

One file per command group, each with a `typer.Typer` of its own that is hung in below. Commands
return nothing, print through `cli.output`, and raise `CommandError` for what a user can mend.
"""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final, cast

import typer

from runnel.cli import config, group, log_commands, pipeline, quota, storage, topic, transaction
from runnel.cli.consume import CONSUME_EXAMPLES, consume
from runnel.cli.logs import printable
from runnel.cli.metrics import METRICS_EXAMPLES, metrics
from runnel.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    CommandError,
    examples,
    sentence,
)
from runnel.cli.produce import PRODUCE_EXAMPLES, produce
from runnel.cli.sql import SQL_EXAMPLES, sql
from runnel.cli.top import TOP_EXAMPLES, top

# Their options are read by argparse, so that they start without this framework.
_PASSED_ON: Final[dict[str, object]] = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
# All that the framework raises for bad usage; it has no public name for their common class.
_Misused: type[Exception] = typer.BadParameter.__bases__[0]
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# What those meant who type what they know from elsewhere.
_HINTS: Final = {
    **{
        f"runnel: No such command '{word}'": f"Did you mean 'runnel {command}'? "
        for command, words in {
            "serve": ("start", "run", "up", "broker"),
            "produce": ("send", "publish", "write", "pub"),
            "consume": ("read", "subscribe", "listen", "tail", "sub"),
            "topic create": ("create",),
            "topic list": ("list", "ls"),
        }.items()
        for word in words
    },
    "runnel produce: Got unexpected extra": "Records come from standard input, as in"
    " 'echo hello | runnel produce TOPIC'. ",
}

app = typer.Typer(
    name="runnel",
    help="A message broker that every Kafka client can use unchanged, and the tools around it.",
    epilog=examples(
        "runnel serve --data-dir ./data",
        "runnel topic create orders --partitions 3",
        "echo hello | runnel produce orders",
        "runnel consume orders --from beginning",
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.add_typer(topic.app, name="topic")
app.command(epilog=PRODUCE_EXAMPLES)(produce)
app.command(epilog=CONSUME_EXAMPLES)(consume)
app.add_typer(group.app, name="group")
app.add_typer(transaction.app, name="transaction")
app.add_typer(config.app, name="config")
app.add_typer(quota.app, name="quota")
app.add_typer(storage.app, name="storage")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(log_commands.app, name="logs")
app.command(epilog=SQL_EXAMPLES)(sql)
app.command(epilog=METRICS_EXAMPLES)(metrics)
app.command(epilog=TOP_EXAMPLES)(top)


@app.command(context_settings=_PASSED_ON)
def serve(context: typer.Context) -> None:
    """Run a broker that every Kafka client can connect to."""
    from runnel.cli.serve import main as run_broker

    raise typer.Exit(run_broker(context.args))


@app.command(context_settings=_PASSED_ON)
def health(context: typer.Context) -> None:
    """Ask whether a broker answers, for probes: status 0 or 1."""
    from runnel.cli.health import main as ask

    raise typer.Exit(ask(context.args))


@app.command(context_settings=_PASSED_ON)
def bench(context: typer.Context) -> None:
    """Load a running broker and tell how fast it is."""
    from runnel.cli.bench import main as run_bench

    raise typer.Exit(run_bench(context.args))


def _show_version(wanted: bool) -> None:
    if wanted:
        from runnel import __version__

        typer.echo(f"runnel {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            metavar="",  # a flag: without this the help would ask for a value
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """What stands before the command."""


def main(argv: Sequence[str]) -> int:
    """Run one command; returns its exit status. Every failure is told in one line."""
    try:
        status = app(args=list(argv), prog_name="runnel", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as error:
        return _failed(str(error), error.status)
    except _Misused as error:
        return _told_misuse(cast(typer.BadParameter, error))
    except UnicodeEncodeError:  # an argument of bytes that are no text, where text is needed
        return _failed("An argument is not UTF-8: names have to be.", EXIT_REFUSED)
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        _drop_output()
        return EXIT_FAILED
    except OSError as error:  # a disk that is full or has failed, a file that may not be read
        return _failed(_told_of_system(error), EXIT_FAILED)
    except (typer.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    return int(status or 0)


def _told_of_system(error: OSError) -> str:
    """What was refused, and why; what the command had to say until then is written, if it can."""
    why = f"{error.strerror or error}."
    is_ours = error.filename is None and error.errno in _NO_ROOM
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
        is_ours = True
    if is_ours:
        return f"The output cannot be written: {why}"
    return why if error.filename is None else f"{os.fsdecode(error.filename)}: {why}"


def _drop_output() -> None:
    """Python would try to write the rest at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told_misuse(error: typer.BadParameter) -> int:
    """Bad usage, in the framework's words, and which help to read."""
    path = "runnel" if error.ctx is None else error.ctx.command_path
    text = error.format_message()
    if not text:  # a group without its command: its help is the answer, and has been shown
        return error.exit_code
    hint = next((hint for start, hint in _HINTS.items() if f"{path}: {text}".startswith(start)), "")
    return _failed(f"{sentence(text)} {hint}Try '{path} --help'.", error.exit_code)


def _failed(text: str, status: int) -> int:
    sys.stderr.write(f"runnel: {printable(text)}\n")
    return status
