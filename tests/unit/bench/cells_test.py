"""Cells by name: none twice, each able to say that a target does not allow it."""

from collections import Counter

from bench.cells import CELLS
from bench.goals import GOALS, MEMORY
from bench.model import QUICK, Target

NOBODY = Target("nobody", ("127.0.0.1", 1))
NEEDS_THE_PROCESS = (
    "idle CPU",
    "1,000 members in 100 groups, classic protocol",
    "1,000 members in 100 groups, consumer protocol",
)
NEEDS_THE_FOLDER = (
    "fetch, 1 consumer, cold",
    "fetch, 16 consumers, cold",
    "produce p99 while cold data is read",
    "compaction of one log",
)


def test_every_measure_has_a_name_of_its_own() -> None:
    names = Counter(measure.name for cell in CELLS for measure in cell.measures)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_goal_is_measured_by_a_quick_cell() -> None:
    quick = {measure.name for cell in CELLS if cell.is_quick for measure in cell.measures}
    wanted = {name for goal in GOALS for name in goal.measures}
    assert wanted - quick == {MEMORY}


def test_what_a_target_does_not_allow_is_left_out() -> None:
    for cell in CELLS:
        if any(measure.name in NEEDS_THE_PROCESS + NEEDS_THE_FOLDER for measure in cell.measures):
            assert cell.run(NOBODY, QUICK) == {}
