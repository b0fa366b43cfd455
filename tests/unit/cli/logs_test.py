"""Goal: a log line is one line, whatever a client put into it, and a flood of them is held back."""

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runnel.cli.log_file import KEPT_MAX, RotatingFile
from runnel.cli.log_limits import SAME_MAX
from runnel.cli.logs import (
    FIELDS_MAX,
    LINE_CHARACTERS_MAX,
    ForJournal,
    JsonLine,
    OneLine,
    configure,
    identify,
    is_journal,
    printable,
)
from runnel.config.definition import ConfigError
from runnel.config.settings import OwnLog


def record(message: str, *args: object, created: float = 0.0) -> logging.LogRecord:
    made = logging.LogRecord("runnel.broker.x", logging.INFO, "f", 1, message, args, None)
    made.created = created
    return made


@pytest.mark.parametrize(
    "hostile", ["a\nb", "a\r\nINFO forged", "\x1b[2J", "tab\there", "\u202eevil"]
)
def test_what_a_client_sends_cannot_start_a_line_or_move_the_cursor(hostile: str) -> None:
    line = OneLine().format(record("client id %s", hostile))
    assert line.isprintable()
    assert "runnel" not in line.split(": ")[0], "the package is left out of the name"


def test_long_lines_are_cut() -> None:
    assert len(printable("x" * 10_000)) <= LINE_CHARACTERS_MAX + 3


def failed(error: Exception) -> logging.LogRecord:
    made = record("it %s", "broke\n")
    try:
        raise error
    except Exception as raised:  # noqa: BLE001  # whatever was given
        made.exc_info = (type(raised), raised, raised.__traceback__)
    return made


def test_json_is_one_object_a_line() -> None:
    line = JsonLine().format(failed(ValueError("boom\nbang")))
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["time"] == "1970-01-01T00:00:00.000Z" or fields["time"].endswith("Z")
    assert (fields["level"], fields["logger"]) == ("info", "broker.x")
    assert fields["message"] == "it broke\\n"
    assert fields["exception"]["type"] == "ValueError"
    assert fields["exception"]["message"] == "boom\\nbang"
    assert "logs_test.py" in fields["exception"]["stack"]


def test_no_line_of_an_exception_can_be_taken_for_one_of_ours() -> None:
    forged = "bad\n2026-01-31T12:00:00.000Z INFO    serve: all is well\x1b[2J"
    first, *others = OneLine().format(failed(ValueError(forged))).split("\n")
    assert "INFO" in first and others
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def test_the_context_is_in_fields_of_their_own() -> None:
    made = record("orders-3 is full")
    made.__dict__.update(topic="orders", partition=3, client_id="a\nb", listener=None, time="not")
    fields = json.loads(JsonLine().format(made))
    assert (fields["topic"], fields["partition"]) == ("orders", 3)
    assert (fields["client_id"], fields["listener"]) == ("a\\nb", None)
    assert fields["time"].endswith("Z"), "no caller can give another time"
    assert not {"args", "msecs", "pathname", "process"} & fields.keys()


def test_long_values_and_many_fields_are_cut() -> None:
    made = record("x" * 10_000)
    made.__dict__.update({f"field_{number}": "y" * 10_000 for number in range(1000)})
    line = JsonLine().format(made)
    assert len(line) < (FIELDS_MAX + 2) * (LINE_CHARACTERS_MAX + 50)


def rotating(path: Path, max_bytes: int = 1000, days: int = 7) -> RotatingFile:
    handler = RotatingFile(str(path), max_bytes, days)
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler


def put_aside(path: Path) -> list[Path]:
    return sorted(each for each in path.parent.iterdir() if each != path)


def test_a_full_file_is_put_aside_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    path.write_text("x" * 950 + "\n")  # of an earlier start: its size counts
    handler = rotating(path)
    for number in range(30):
        handler.handle(record("%s", f"{number:099d}", created=time.time() + number))
    handler.close()
    assert [each.stat().st_size for each in put_aside(path)] == [951, 1000, 1000]
    lines = [line for each in [*put_aside(path), path] for line in each.read_text().splitlines()]
    assert [int(line) for line in lines[1:]] == list(range(30))


def test_old_files_and_too_many_are_deleted_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    other = tmp_path / "broker.log.notes"
    other.touch()
    old = tmp_path / "broker.log.20200101T000000.000"
    old.touch()
    os.utime(old, (time.time() - 8 * 86_400,) * 2)
    rotating(path).close()
    assert put_aside(path) == [other]
    for number in range(KEPT_MAX + 5):
        (tmp_path / f"broker.log.20300101T0000{number:02d}.000").touch()
    rotating(path).close()
    left = put_aside(path)
    assert len(left) == KEPT_MAX + 1 and left[0].name.endswith("05.000")


def test_a_disk_that_fails_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handler = rotating(Path("/dev/full"))
    for _ in range(3):
        handler.handle(record("lost"))
    handler.close()
    assert capsys.readouterr().err.count("log lines are lost, /dev/full") == 1


def test_a_file_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "none" / "broker.log"):
        with pytest.raises(ConfigError, match=r"runnel\.log\.file: cannot write .*choose another"):
            rotating(wrong)


@pytest.fixture
def own_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("runnel")
    before = logger.handlers[:], logger.level, logger.propagate
    yield logger
    for handler in logger.handlers:
        handler.close()
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def test_the_file_and_standard_error_get_the_same(
    tmp_path: Path, own_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    own_logger.handlers[:] = []
    path = tmp_path / "broker.log"
    configure(OwnLog(level="warning", format="json", file=str(path)))
    identify(broker_id=3)
    own_logger.info("not this")
    for _ in range(20):
        own_logger.warning("this")
    own_logger.handlers[0].close()
    lines = path.read_text().splitlines()
    assert len(lines) == SAME_MAX + 1
    assert json.loads(lines[0])["message"] == "this"
    assert json.loads(lines[0])["broker_id"] == 3
    assert json.loads(lines[-1])["held_back"] == 20 - SAME_MAX, "told at the end at the latest"
    assert capsys.readouterr().err.splitlines() == lines


def test_the_log_can_go_to_standard_output(
    own_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    own_logger.handlers[:] = []
    configure(OwnLog(stream="stdout"))
    own_logger.warning("this")
    told = capsys.readouterr()
    assert told.out.endswith("WARNING runnel: this\n") and not told.err


def test_lines_for_the_journal_carry_their_priority(tmp_path: Path) -> None:
    made = failed(ValueError("boom"))
    for level, priority in ((10, 7), (20, 6), (30, 4), (40, 3), (50, 3)):
        made.levelno = level
        lines = ForJournal(OneLine()).format(made).split("\n")
        assert len(lines) > 1 and all(line.startswith(f"<{priority}>") for line in lines)
    with (tmp_path / "stream").open("w") as stream:
        status = os.fstat(stream.fileno())
        assert is_journal(stream, f"{status.st_dev}:{status.st_ino}")
        assert not is_journal(stream, f"{status.st_dev}:{status.st_ino + 1}")
        assert not is_journal(stream, "")
    assert not is_journal(stream, ""), "closed"
