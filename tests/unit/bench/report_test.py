"""The table holds medians and verdicts, and the file holds every round."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.goals import By, Goal, Verdict, judge
from bench.report import (
    Failure,
    Outcome,
    Row,
    Time,
    aligned,
    details,
    longest,
    medians,
    show,
    table,
    write,
)
from bench.trust import Trust

GOALS = (Goal("fetch", True, 1.2, 1.5), Goal("fetch", False, 0.5, by=By.CPU))
SIGNED = {"commit": "abc"}


def rows(target: str, values: Sequence[float], cpu: float = 1.0) -> list[Row]:
    return [
        Row(target, number, "fetch", "MB/s", value, cpu, 0.5, 1.0, 2.0, 30, 40.0)
        for number, value in enumerate(values)
    ]


def outcome(*kept: list[Row]) -> Outcome:
    every = [row for some in kept for row in some] + [Row("kafka", 0, "other", "us", 7.0)]
    verdicts = judge(medians(every, "kafka"), medians(every, "runnel os"), GOALS)
    targets = ["kafka", "runnel os", "runnel interval"]
    failures = [Failure("kafka", "reopen", 1, "gone")]
    return Outcome(targets, every, [], verdicts, [Trust("sink", 1.6, 1.5)], failures)


RUN = outcome(
    rows("kafka", [1000, 5000, 3000], cpu=2.0),
    rows("runnel os", [60, 3900, 4000], cpu=1.5),
    rows("runnel interval", [1500]),
)


def test_a_line_has_medians_ratio_bounds_and_verdict() -> None:
    head, first, cpu, *_ = table(RUN)
    assert head[2:] == [
        *("kafka", "runnel os", "ratio", "must", "aim", "met"),
        *("runnel interval", "ratio"),
    ]
    assert first[:4] == ["fetch", "MB/s", "3,000", "3,900"]
    assert first[4:] == ["1.3x", ">= 1.2x", "1.5x", "yes", "1,500", "0.5x"]
    assert cpu[:4] == ["fetch: broker CPU", "s/GB", "2.00", "1.50"]
    assert cpu[4:8] == ["0.75x", "<= 0.5x", "", "NO"]


def test_measures_without_a_goal_come_last() -> None:
    assert table(RUN)[-1][:4] == ["other", "us", "7.00", ""]


def test_a_slower_broker_is_reported_slower() -> None:
    slow = outcome(rows("kafka", [100]), rows("runnel os", [50]))
    assert [verdict.compared for verdict in slow.verdicts] == [0.5, 1.0]
    assert not any(verdict.met for verdict in slow.verdicts)


def test_details_have_the_spread() -> None:
    line = details(rows("kafka", [1, 2, 3]))[1]
    assert line[:4] == ["fetch", "kafka", "2.00", "1.00..3.00"]
    assert line[-1] == "50.0"


def test_every_figure_is_kept(tmp_path: Path) -> None:
    path = write(SIGNED, RUN, tmp_path)
    first, *others = (json.loads(line) for line in path.read_text().splitlines())
    assert first == {"kind": "run", "commit": "abc", "targets": list(RUN.targets)}
    figures = [other["value"] for other in others if other["kind"] == "figure"]
    assert figures == [1000, 5000, 3000, 60, 3900, 4000, 1500, 7.0]
    assert [other["met"] for other in others if other["kind"] == "verdict"] == [True, False]
    assert [other["why"] for other in others if other["kind"] == "failure"] == ["gone"]
    assert "abc" in path.name


def test_plain_text_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show([["a", "b", "c"], ["long name", "s", "1"]])
    assert capsys.readouterr().out == "a          b  c\n---------------\nlong name  s  1\n"
    assert aligned([["a", "b", "c"]]).startswith("a  b  c")


def test_a_verdict_without_an_aim_meets_it_with_the_must() -> None:
    assert Verdict(Goal("x", True, 1.0), 1.0).aim_met


def test_where_the_time_of_a_run_went() -> None:
    spent = [Time("kafka", "reopen", 1, 30.0, 120.0), Time("runnel os", "reopen", 1, 30.0, 60.0)]
    told = longest([*spent, Time("kafka", "fetch", 1, 0.0, 6.0)], 1)
    assert told.startswith("minutes: 4 in all, 1 of them waiting")
    assert told.endswith("longest: reopen 3.0")
