"""The command line as a whole: every command and option explains itself; misuse is one line."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from runnel import __version__
from runnel.cli.app import app, main

READ_BY_ARGPARSE = {"serve", "bench", "health"}


def commands() -> Iterator[tuple[str, Any]]:  # the framework's class of a command is private
    """Path and command, groups included."""
    waiting = [("runnel", typer.main.get_command(app))]
    while waiting:
        path, command = waiting.pop()
        yield path, command
        for name, child in getattr(command, "commands", {}).items():
            waiting.append((f"{path} {name}", child))


@pytest.mark.parametrize(("path", "command"), [pytest.param(*row, id=row[0]) for row in commands()])
def test_the_help_is_complete(path: str, command: Any) -> None:  # noqa: ANN401  # as above
    assert (command.help or "").strip(), f"{path} says nothing of itself"
    assert command.get_short_help_str(200).endswith("."), path
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{path}: {parameter.name} has no help"
    is_group = hasattr(command, "commands")
    if not is_group and command.name not in READ_BY_ARGPARSE:
        assert f"$ {path} " in (command.epilog or "") or f"| {path} " in (command.epilog or ""), (
            f"{path} has no example"
        )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"runnel {__version__}\n"


@pytest.mark.parametrize("arguments", [["nothing"], ["--nothing"]])
def test_misuse_is_one_line_that_names_the_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("runnel: No such ") and said.err.endswith("Try 'runnel --help'.\n")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["start"], "Did you mean 'runnel serve'?"),
        (["server"], "Did you mean 'serve'?"),
        (["publish", "orders"], "Did you mean 'runnel produce'?"),
        (["ls"], "Did you mean 'runnel topic list'?"),
        (["topic", "ls"], "Did you mean 'list'?"),
        (["produce", "orders", "tea"], "'echo hello | runnel produce TOPIC'."),
    ],
)
def test_what_newcomers_type_is_understood(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f" {meant} Try '" in said and said.count("\n") == 1, said


def test_an_address_that_is_a_url_is_refused_with_how_to_write_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["topic", "list", "-b", "http://localhost:9092"]) == 2
    assert "Write it as localhost:9092" in capsys.readouterr().err


def test_serve_does_not_import_the_framework() -> None:
    """It would take most of the 0.3 s in which a broker shall answer (ADR 4)."""
    code = (
        "import sys; sys.argv = ['runnel', 'serve', '--data-dir', '/dev/null/x']\n"
        "from runnel.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code, end\n"
        "assert not {'typer', 'rich', 'click'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
