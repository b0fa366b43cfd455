"""What a person at a terminal sees: questions, tables, bars; and what the shell completes."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Runnel, command
from tests.support.process import BrokerProcess

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def runnel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runnel]:
    folder: Path = tmp_path_factory.mktemp("cli")
    with BrokerProcess(folder / "data") as broker:
        yield Runnel(broker.bootstrap)


def at_terminal(
    runnel: Runnel, *arguments: str, answer: str = "", asked: str = "?"
) -> tuple[int, str]:
    """Exit status, and all that appeared on the screen. Answers when it is asked."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=runnel.environment({"TERM": "xterm", "COLUMNS": "100"}),
        start_new_session=True,
    )
    os.close(theirs)
    screen, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side has left
            break
        screen += chunk
        if answer and asked.encode() in screen:
            os.write(ours, answer.encode())
            answer = ""
    os.close(ours)
    return process.wait(PATIENCE_S), screen.decode()


def test_deleting_asks(runnel: Runnel) -> None:
    runnel("topic", "create", "asked")
    status, screen = at_terminal(runnel, "topic", "delete", "asked", answer="n\n")
    assert status == 1 and "Delete asked with all records? [y/N]" in screen
    assert "Nothing was changed" in screen and "asked" in runnel("topic", "list").out
    status, screen = at_terminal(runnel, "topic", "delete", "asked", answer="y\n")
    assert status == 0 and "deleted asked" in screen
    assert "asked" not in runnel("topic", "list").out


def test_ctrl_c_at_a_question_changes_nothing(runnel: Runnel) -> None:
    runnel("topic", "create", "kept", "--if-not-exists")
    status, screen = at_terminal(runnel, "topic", "delete", "kept", answer="\x04")  # end of input
    assert status == 130 and "deleted" not in screen
    assert "kept" in runnel("topic", "list").out


def test_tables_have_lines(runnel: Runnel) -> None:
    runnel("topic", "create", "kept", "--if-not-exists")
    status, screen = at_terminal(runnel, "topic", "list")
    assert status == 0 and "─" in screen and "kept" in screen


def test_records_cannot_command_the_terminal(runnel: Runnel) -> None:
    runnel("produce", "harmful", stdin="\x1b[2Jgone\n")
    status, screen = at_terminal(runnel, "consume", "harmful")
    assert status == 0 and "\x1b[2J" not in screen and "\\x1b[2Jgone" in screen


def test_long_work_shows_how_far_it_is(runnel: Runnel, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("line\n" * 100_000)
    status, screen = at_terminal(runnel, "produce", "long", "--file", str(lines))
    assert status == 0 and "sending to long" in screen and "%" in screen
    assert "sent 100,000 records" in screen


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("runnel to", {"top", "topic"}),
        ("runnel topic a", {"alter", "add-partitions"}),
        ("runnel produce --comp", {"--compression"}),
        ("runnel produce t --compression z", {"zstd"}),
    ],
)
def test_the_shell_completes(runnel: Runnel, words: str, wanted: set[str]) -> None:
    environ = {
        "_RUNNEL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = runnel.process(environ=environ)
    assert set(done.out.split()) == wanted, done


def test_whoever_sends_from_the_keyboard_is_told_how_to_end(runnel: Runnel) -> None:
    status, screen = at_terminal(
        runnel, "produce", "typed", answer="tea\n\x04", asked="Ctrl-D ends"
    )
    assert status == 0 and "sent 1 record" in screen
    assert runnel("consume", "typed").line == "tea"
