"""The try that the host disturbed least counts, and not the one with the best figure."""

import itertools
from typing import NamedTuple

import pytest

from bench.calm import CALM, Stolen, calmest


class Times(NamedTuple):
    user: float
    nice: float
    system: float
    idle: float
    steal: float


@pytest.fixture
def stolen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the host takes of each second between two looks."""
    shares: list[float] = []
    now, looks = Times(0.0, 0.0, 0.0, 0.0, 0.0), itertools.count()

    def look() -> Times:
        nonlocal now
        if next(looks) % 2:
            share = shares.pop(0)
            now = now._replace(user=now.user + 1 - share, steal=now.steal + share)
        return now

    monkeypatch.setattr("bench.calm.psutil.cpu_times", look)
    return shares


def test_share_of_what_was_wanted(stolen: list[float]) -> None:
    stolen.append(0.25)
    assert Stolen().share() == pytest.approx(0.25)


def test_a_calm_try_is_the_only_one(stolen: list[float]) -> None:
    stolen += [CALM / 2]
    figures, _, tries = calmest(lambda: "figure", lambda: None, 4)
    assert (figures, tries) == ("figure", 1)


def test_least_disturbed_counts_and_not_the_best(stolen: list[float]) -> None:
    stolen += [0.3, 0.1, 0.2]
    figures, pauses = iter([100, 500, 90]), list[int]()
    taken = calmest(lambda: next(figures), lambda: pauses.append(1), 3)
    assert (taken.figures, taken.tries) == (500, 3)
    assert taken.stolen == pytest.approx(0.1)
    assert len(pauses) == 2


def test_systems_without_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(NamedTuple):
        user: float = 1.0
        nice: float = 0.0
        system: float = 1.0

    monkeypatch.setattr("bench.calm.psutil.cpu_times", Plain)
    assert Stolen().share() == 0.0
