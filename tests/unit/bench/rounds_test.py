"""Targets take turns within a round, and a cell that fails costs only its own figures."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from bench.goals import MEMORY
from bench.model import QUICK, Cell, Figure, Figures, Measure, Scale, Target
from bench.rounds import Rounds
from bench.trust import SINK, SINK_MEASURES
from runnel.bench.pipeline import LoadError

KAFKA = Target("kafka", ("127.0.0.1", 1), os.getpid())
RUNNEL = Target("runnel os", ("127.0.0.1", 2))
BARE = Target(SINK, ("127.0.0.1", 3))


def cell(name: str, seen: list[str], *, fails_on: str = "", starts_its_own: bool = False) -> Cell:
    def run(target: Target, _scale: Scale) -> Figures:
        seen.append(f"{target.name}: {name}")
        if target.name == fails_on:
            raise LoadError("refused")
        return {name: Figure(1.0)}

    return Cell((Measure(name, "MB/s"),), run, starts_its_own=starts_its_own)


@pytest.fixture(autouse=True)
def _sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.rounds.settle", lambda _targets: 0.0)


@pytest.fixture
def rounds() -> Rounds:
    return Rounds([KAFKA, RUNNEL, BARE], QUICK)


def test_targets_take_turns(rounds: Rounds) -> None:
    seen: list[str] = []
    rounds.run([cell("a", seen), cell("b", seen)], 2)
    assert seen == ["kafka: a", "runnel os: a", "kafka: b", "runnel os: b"] * 2
    assert not rounds.failures


def test_rounds_are_added_to_those_there_are(rounds: Rounds) -> None:
    seen: list[str] = []
    once = cell("a", seen)._replace(is_repeated=False)
    rounds.run([once, cell("b", seen)], 2)
    rounds.run([once], 2)
    assert [text for text in seen if text.endswith("a")] == ["kafka: a", "runnel os: a"] * 2
    assert [row.round for row in rounds.rows if row.measure == "a"] == [1, 1, 3, 3]


def test_what_goals_ask_of_one_alone_is_asked_of_the_others_once() -> None:
    seen: list[str] = []
    own = cell("a", seen)._replace(is_own=True)
    Rounds([KAFKA, RUNNEL], QUICK, RUNNEL.name).run([own], 3)
    assert seen == ["kafka: a", *["runnel os: a"] * 3]
    seen.clear()
    Rounds([KAFKA, RUNNEL], QUICK, RUNNEL.name, is_quick=True).run([own], 3)
    assert seen == ["runnel os: a"] * 3


def test_what_is_asked_then_follows_each_step(rounds: Rounds) -> None:
    seen: list[str] = []

    def then(cell: Cell, target: Target, number: int) -> None:
        seen.append(f"then {number}, {target.name}, {cell.measures[0].name}")

    rounds.run([cell("a", seen)], 2, then=then)
    assert seen[:4] == ["kafka: a", "then 1, kafka, a", "runnel os: a", "then 1, runnel os, a"]
    assert seen[5::4] == ["then 2, kafka, a"]


def test_a_failure_is_noted_and_the_run_goes_on(
    rounds: Rounds, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds.run([cell("a", [], fails_on="kafka"), cell("b", [])], 1)
    assert [failure[:3] for failure in rounds.failures] == [("kafka", "a", 1)]
    assert "refused" in rounds.failures[0].why
    assert "FAILED in round 1, kafka: a: " in capsys.readouterr().err
    figures = [(row.target, row.measure) for row in rounds.rows if row.measure != MEMORY]
    assert figures == [("runnel os", "a"), ("kafka", "b"), ("runnel os", "b")]


def test_the_sink_gets_what_it_can_answer(rounds: Rounds) -> None:
    seen: list[str] = []
    rounds.run([cell(SINK_MEASURES[0], seen), cell("fetch", seen)], 1)
    assert [text for text in seen if text.startswith(SINK)] == [f"{SINK}: {SINK_MEASURES[0]}"]


def test_what_needs_a_broker_of_its_own_is_not_asked_of_a_running_one(rounds: Rounds) -> None:
    seen: list[str] = []
    rounds.run([cell("start", seen, starts_its_own=True)], 1)
    assert seen == []


def test_memory_is_taken_where_the_process_is_known(rounds: Rounds) -> None:
    rounds.run([cell("a", [])], 2)
    weighed = [(row.target, row.round) for row in rounds.rows if row.measure == MEMORY]
    assert weighed == [("kafka", 1), ("kafka", 2)]
    assert all(row.value > 1 for row in rounds.rows if row.measure == MEMORY)


def test_who_is_only_shown_takes_part_in_every_other_round() -> None:
    seen: list[str] = []
    shown = Target("runnel interval", ("127.0.0.1", 4))
    Rounds([KAFKA, RUNNEL, shown], QUICK, beside=[shown.name]).run([cell("a", seen)], 3)
    assert seen.count("runnel os: a") == 3
    assert seen.count("runnel interval: a") == 2


def test_what_missed_is_in_every_round_that_follows_though_it_takes_long() -> None:
    seen: list[str] = []
    long = cell("a", seen)._replace(is_repeated=False, is_own=True)
    rounds = Rounds([KAFKA, RUNNEL], QUICK, RUNNEL.name)
    rounds.run([long], 3)
    assert seen == ["kafka: a", "runnel os: a"]
    rounds.run([long], 3, is_again=True)
    assert seen[2:] == ["runnel os: a"] * 3


def test_the_others_are_stopped_where_a_cell_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[list[str]] = []

    @contextmanager
    def still(targets: Iterable[Target]) -> Iterator[None]:
        stopped.append([target.name for target in targets])
        yield

    monkeypatch.setattr("bench.rounds.still", still)
    alone = cell("a", [])._replace(is_alone=True)
    Rounds([KAFKA, RUNNEL], QUICK).run([alone, cell("b", [])], 1)
    assert stopped == [["runnel os"], ["kafka"], [], []]


def test_what_a_cell_took_is_noted(rounds: Rounds) -> None:
    rounds.run([cell("a", [])], 2)
    assert [spent[:3] for spent in rounds.times] == [
        (target.name, "a", number) for number in (1, 2) for target in (KAFKA, RUNNEL)
    ]
    assert all(spent.settled_s >= 0 and spent.took_s >= 0 for spent in rounds.times)
