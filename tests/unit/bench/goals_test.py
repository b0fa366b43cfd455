"""Every goal names what is measured, and is judged the right way round."""

import pytest

from bench.cells import CELLS
from bench.goals import (
    GOALS,
    MEMORY,
    By,
    Goal,
    Median,
    Verdict,
    judge,
    to_measure_again,
)

KAFKA = {"rate": Median(100.0, 2.0), "time": Median(50.0, None)}
FASTER = {"rate": Median(150.0, 1.0), "time": Median(20.0, None)}
UNITS = {measure.name: measure.unit for cell in CELLS for measure in cell.measures}
RATES = {"MB/s", "messages/s", "requests/s", "transactions/s"}


def one(goal: Goal) -> Verdict:
    (verdict,) = judge(KAFKA, FASTER, [goal])
    return verdict


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_every_goal_names_measures_that_a_quick_cell_has(goal: Goal) -> None:
    quick = {measure.name for cell in CELLS if cell.is_quick for measure in cell.measures}
    assert set(goal.measures) <= quick | {MEMORY}


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_rates_shall_be_high_and_all_else_low(goal: Goal) -> None:
    is_rate = UNITS.get(goal.measure, "MB") in RATES and goal.by is not By.CPU
    assert goal.at_least == is_rate
    if goal.aim is not None:
        assert goal.reaches(goal.must, goal.aim), "an aim asks for more than a must"


def test_a_rate_must_be_reached() -> None:
    verdict = one(Goal("rate", True, 1.5, 1.6))
    assert verdict.compared == 1.5
    assert (verdict.met, verdict.aim_met) == (True, False)
    assert not one(Goal("rate", True, 1.51)).met


def test_a_time_must_be_kept() -> None:
    verdict = one(Goal("time", False, 0.5, 0.4))
    assert (verdict.compared, verdict.met, verdict.aim_met) == (0.4, True, True)
    assert not one(Goal("time", False, 0.39)).met


def test_cpu_is_compared_with_cpu() -> None:
    assert one(Goal("rate", False, 0.6, by=By.CPU)).compared == 0.5


def test_runnel_is_compared_with_itself_and_with_amounts() -> None:
    assert one(Goal("rate", False, 8.0, by=By.ITSELF, base="time")).compared == 7.5
    assert one(Goal("time", False, 19.0, by=By.AMOUNT)).met is False


@pytest.mark.parametrize(
    "goal", [Goal("none", True, 1.0), Goal("time", False, 1.0, by=By.CPU)], ids=["value", "cpu"]
)
def test_what_was_not_measured_is_not_judged(goal: Goal) -> None:
    assert judge(KAFKA, FASTER, [goal]) == []


def test_what_missed_is_measured_again_with_what_it_is_compared_with() -> None:
    met, missed = Goal("rate", True, 1.5), Goal("rate", False, 1.0, by=By.ITSELF, base="time")
    assert to_measure_again(judge(KAFKA, FASTER, [met])) == set()
    assert to_measure_again(judge(KAFKA, FASTER, [met, missed])) == {"rate", "time"}
