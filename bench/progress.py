"""What runs now and how long it will take: a bar on a terminal, a line per step elsewhere.

The time left is the sum of what the same steps took in the round before; steps not yet seen are
taken to be as long as the average one.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

Step = tuple[str, str]  # target, cell


class Steps:
    """All steps of a run, in order; times itself by their names."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = list(reversed(steps))
        self._seconds: dict[Step, float] = {}

    def left_s(self) -> float | None:
        """None before the first step is done."""
        if not self._seconds:
            return None
        average = sum(self._seconds.values()) / len(self._seconds)
        return sum(self._seconds.get(step, average) for step in self._left)

    def done(self, step: Step, seconds: float) -> None:
        assert self._left[-1] == step, f"{step} is out of turn"
        self._left.pop()
        self._seconds[step] = seconds


class Shown:
    """Tells of one step after the other; made by `shown`."""

    def __init__(self, steps: Sequence[Step], bar: Progress | None) -> None:
        self._steps = Steps(steps)
        self._count, self._number = len(steps), 0
        self._bar = bar
        self._task = bar.add_task("", total=len(steps), left="") if bar else None

    @contextmanager
    def step(self, step: Step, text: str) -> Iterator[None]:
        left = spelled(self._steps.left_s())
        self._number += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, left=left, refresh=True)
        else:
            sys.stderr.write(f"{self._number} of {self._count}, {left}: {text}\n")
            sys.stderr.flush()
        started = time.perf_counter()
        try:
            yield
        finally:
            self._steps.done(step, time.perf_counter() - started)
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)


@contextmanager
def shown(steps: Sequence[Step]) -> Iterator[Shown]:
    if not sys.stderr.isatty():
        yield Shown(steps, None)
        return
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}  {task.description}"),
    )
    # Drawn between steps only: a drawing thread would take time from the load.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        yield Shown(steps, bar)


def spelled(left_s: float | None) -> str:
    if left_s is None:
        return "time left not known yet"
    minutes, seconds = divmod(round(left_s), 60)
    return f"{minutes} min left" if minutes >= 2 else f"{minutes * 60 + seconds} s left"
