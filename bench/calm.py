"""Tails are measured while the host leaves the machine alone, or as nearly so as can be had.

On a virtual machine the host may give the processors to somebody else for milliseconds, and then
the slowest of a hundred requests tells about that. The kernel says how much was taken so. A figure
for which it was too much is taken again, a few times; the one that had least taken counts, whatever
it says. Which try that is does not depend on the figure, and it is so for every broker (ADR 56).
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import psutil

T = TypeVar("T")
CALM = 0.03  # of the time that processes wanted
TRIES = 4


class Taken(NamedTuple, Generic[T]):
    """`stolen` is the share of the wanted processor time that the host took meanwhile."""

    figures: T
    stolen: float
    tries: int = 1


class Stolen:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._began = _wanted_and_stolen()

    def share(self) -> float:
        wanted, stolen = (
            now - then for now, then in zip(_wanted_and_stolen(), self._began, strict=True)
        )
        return stolen / wanted if wanted > 0 else 0.0


def _wanted_and_stolen() -> tuple[float, float]:
    """Seconds of all processors. Systems that are told nothing by a host have no `steal`."""
    times = psutil.cpu_times()
    stolen = float(getattr(times, "steal", 0.0))
    busy = times.user + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
    return busy + times.nice + stolen, stolen


def calmest(take: Callable[[], T], between: Callable[[], object], tries: int) -> Taken[T]:
    """Until the host took little, at most `tries` times; `between` is called before each other."""
    best: Taken[T] | None = None
    for number in range(1, tries + 1):
        if number > 1:
            between()
        stolen = Stolen()
        figures = take()
        share = stolen.share()
        if best is None or share < best.stolen:
            best = Taken(figures, share)
        best = best._replace(tries=number)
        if best.stolen <= CALM:
            break
    assert best is not None, "at least one try"
    return best
