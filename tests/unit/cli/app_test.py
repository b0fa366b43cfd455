"""The command line as a whole: every command and option explains itself; misuse is one line."""

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
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


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 70}.com"])
def test_what_no_host_is_called(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "-b", f"{host}:9"]) == 1
    assert main(["health", "-b", f"{host}:9"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "that is no name of a host" in first and "that is no name of a host" in second


@pytest.mark.parametrize("seconds", ["inf", "1e20", "nan", "-1"])
def test_no_timeout_is_too_long(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "-b", "127.0.0.1:1", "--timeout", seconds]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_port_is_no_longer_than_ports_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "-b", "127.0.0.1:0000009999999"]) == 2
    assert "is not an address" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "t", "--partitions", "99999999999"],
        ["create", "t", "--replication-factor", "40000"],
        ["add-partitions", "t", "--partitions", "99999999999"],
    ],
)
def test_numbers_that_no_request_has_room_for(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topic", *arguments]) == 2
    said = capsys.readouterr().err
    assert "is not in the range" in said and said.count("\n") == 1


def test_what_the_system_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(_path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "x"))

    monkeypatch.setattr(Path, "is_dir", denied)
    assert main(["storage", "describe", str(tmp_path / "x")]) == 1
    assert capsys.readouterr().err == f"runnel: {tmp_path}/x: Permission denied.\n"


def test_a_plot_where_no_file_can_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=0\ncluster.id=x\n")
    plot = tmp_path / "none" / "x.svg"
    assert main(["storage", "analyze", str(tmp_path), "--plot", str(plot)]) == 1
    assert capsys.readouterr().err == f"runnel: {plot}: No such file or directory.\n"


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
