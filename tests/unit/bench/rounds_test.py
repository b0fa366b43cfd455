"""Which cell loads which target in which round."""

import pytest

from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from bench.rounds import Rounds

TARGETS = [Target("kafka", ("127.0.0.1", 1)), Target("runnel os", ("127.0.0.1", 2))]


def cell(name: str, *, is_repeated: bool = True, is_own: bool = False) -> Cell:
    def run(_target: Target, _scale: Scale) -> Figures:
        return {name: Figure(1.0)}

    measures = (Measure(name, "s"), Measure(f"{name}, not to be had", "s"))
    return Cell(measures, run, is_repeated=is_repeated, is_own=is_own)


CELLS = [cell("often"), cell("once", is_repeated=False), cell("own", is_own=True)]


@pytest.mark.parametrize("alone", [None, "runnel os"])
def test_cells_run_where_and_as_often_as_they_say(alone: str | None) -> None:
    rounds = Rounds(TARGETS, Scale(), alone)
    rounds.run(CELLS, 3)
    ran = {(row.measure, row.target, row.round) for row in rounds.rows}
    both = [target.name for target in TARGETS]
    assert not rounds.failures
    assert ran == (
        {("often", name, number) for name in both for number in (1, 2, 3)}
        | {("once", name, 1) for name in both}
        | {("own", name, number) for name in both for number in (1, 2, 3) if alone in (None, name)}
    )
