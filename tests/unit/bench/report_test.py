"""The table holds medians, a slower broker looks slower, and the file holds every round."""

import json
from pathlib import Path

from bench.model import Target
from bench.report import Row, table, write

FAST = Target("fast", ("127.0.0.1", 1))
SLOW = Target("slow", ("127.0.0.1", 2))
MEASURE = "unbatched produce, 1 connection"


def rows(target: Target, values: list[float]) -> list[Row]:
    return [
        Row(target.name, number, MEASURE, "requests/s", value, 12.5, 0.5, 40.0)
        for number, value in enumerate(values)
    ]


def test_the_table_shows_medians_and_spread_of_each_target() -> None:
    text = table([FAST, SLOW], rows(FAST, [5000, 1000, 3000]) + rows(SLOW, [50, 70, 60]))
    (line,) = (line for line in text.splitlines() if line.startswith(MEASURE))
    for part in ("3,000", "1,000..5,000", "60.0", "50.0..70.0", "12.5 us/request", "50.0 %"):
        assert part in line
    assert line.index("3,000") < line.index("60.0")


def test_a_measure_that_no_target_has_is_left_out() -> None:
    text = table([FAST], rows(FAST, [1.0]))
    assert "reopen" not in text


def test_every_figure_is_kept(tmp_path: Path) -> None:
    path = write({"commit": "abc"}, rows(FAST, [1.0, 2.0, 3.0]), tmp_path)
    first, *others = (json.loads(line) for line in path.read_text().splitlines())
    assert first == {"commit": "abc"}
    assert [other["value"] for other in others] == [1.0, 2.0, 3.0]
    assert "abc" in path.name
