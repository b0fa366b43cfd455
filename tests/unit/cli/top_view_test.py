"""Frames as they appear on screens of several sizes."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from runnel.cli.top_frame import ApiRow, FolderRow, Frame, GroupRow, TopicRow
from runnel.cli.top_view import Showing, draw, sparkline

SHOWING = Showing("http://127.0.0.1:9644/metrics", 2.0, "12:34:56")
FRAME = Frame(
    version="0.1.0",
    broker="7",
    up_s=7260,
    in_rate=3 << 20,
    out_rate=0,
    requests_rate=1500,
    errors_rate=2.5,
    in_history=[0, 5, 10],
    apis=[ApiRow("Produce", 1000, 0.0001, 0.004), ApiRow("Fetch", 500, None, None)],
    errors=[("OFFSET_OUT_OF_RANGE", 2.5)],
    connections=42,
    topics=[TopicRow(f"topic-{n}", 10 - n, -2048, 1 << 20, 3) for n in range(40)],
    groups=[GroupRow("billing", 12_345, 3, 2), GroupRow("evil\x1b[2J", 1, None, None)],
    folders=[FolderRow("/data", 1 << 30, 1 << 29, None)],
    group_states=[("Stable", 2)],
)


def screen(
    frame: Frame, width: int, height: int | None, showing: Showing = SHOWING
) -> tuple[str, list[str]]:
    out = io.StringIO()
    Console(file=out, width=width, height=height or 25).print(draw(frame, showing, width, height))
    return out.getvalue(), out.getvalue().splitlines()


def test_everything_of_interest_is_there() -> None:
    text, _ = screen(FRAME, 120, None)
    for part in (
        *("runnel 0.1.0", "broker 7", "up 2 h 1 min", "3.0 MiB/s", "▁▅█", "1.50k/s", "42"),
        *("Produce", "100 us", "4 ms", "errors: OFFSET_OUT_OF_RANGE", "2.50"),
        *("40 topics by records/s", "topic-0", "-2.0 KiB", "billing", "12.3k", "+3"),
        *("/data", "512.0 MiB free of 1.0 GiB", "groups: 2 Stable"),
    ):
        assert part in text, part


@pytest.mark.parametrize("width", [60, 76, 80, 109, 110, 200])
@pytest.mark.parametrize("height", [24, 50])
def test_a_frame_fits_its_screen(width: int, height: int) -> None:
    frame = FRAME
    frame.warnings = ["one", "two"]
    _, lines = screen(frame, width, height)
    assert max(map(cell_len, lines)) <= width
    if width >= 76:
        assert len(lines) <= height
        assert "quit" in lines[-1]
    frame.warnings = []


def test_records_of_others_cannot_command_the_terminal() -> None:
    text, _ = screen(FRAME, 120, None)
    assert "\x1b" not in text and "evil\\x1b" in text


def test_warnings_are_told_and_bounded() -> None:
    frame = Frame(warnings=[f"warning {n}" for n in range(9)])
    text, _ = screen(frame, 100, None)
    assert "! warning 0" in text and "! and 4 more" in text and "warning 8" not in text


def test_silence_and_pause_are_shown() -> None:
    showing = SHOWING._replace(silence="no answer since 12:00:00: Connection refused", paused=True)
    text, _ = screen(Frame(), 100, 30, showing)
    assert "! no answer since 12:00:00" in text and "paused" in text and "go on" in text


def test_nothing_known_yet() -> None:
    text, _ = screen(Frame(), 80, 24)
    assert "0 topics" in text and "-" in text


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 1, 2], "_-#") == "_-#"
