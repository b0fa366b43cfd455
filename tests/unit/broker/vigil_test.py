"""Goal: processors are kept awake while somebody looks, and not for long after.

Method: a file of the test's own in place of the system's, a loop that keeps its timers.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runnel.broker import vigil as vigil_module
from runnel.broker.vigil import CPUS_MAX, LASTS_S, Vigil
from runnel.wire.hot import COMPILED

pytestmark = pytest.mark.skipif(COMPILED, reason="compiled code does not look up what is replaced")


class Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        assert delay_s == LASTS_S
        self.timers.append(Timer(callback))
        return self.timers[-1]

    def later(self) -> None:
        for timer in self.timers:
            if timer.callback is not None:
                timer.callback()
        self.timers.clear()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpu_dma_latency"
    path.touch()
    monkeypatch.setattr(vigil_module, "LATENCY_FILE", str(path))
    monkeypatch.setattr(vigil_module, "_all_cpus", lambda: 2)
    return path


def holders(path: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(str(path) == str(link.readlink()) for link in links if link.exists())


def vigil_on(loop: Loop) -> Vigil:
    given: Any = loop
    return Vigil(given)


def test_it_holds_the_file_from_the_beginning_until_a_moment_after_the_end(file: Path) -> None:
    loop = Loop()
    vigil = vigil_on(loop)
    assert holders(file) == 0
    for _ in range(2):
        vigil.begin()
        vigil.begin()
        assert file.read_bytes() == bytes(4), "no microsecond"
        assert holders(file) == 1
        vigil.end()
        vigil.end()
        assert holders(file) == 1
        assert len(loop.timers) == 1
        loop.later()
        assert holders(file) == 0


def test_who_begins_again_in_time_goes_on(file: Path) -> None:
    loop = Loop()
    vigil = vigil_on(loop)
    vigil.begin()
    vigil.end()
    vigil.begin()
    loop.later()
    assert holders(file) == 1
    vigil.end()
    loop.later()
    assert holders(file) == 0


def test_where_it_is_not_allowed_nothing_happens(file: Path) -> None:
    file.unlink()
    loop = Loop()
    vigil = vigil_on(loop)
    vigil.begin()
    vigil.end()
    file.touch()
    vigil.begin()
    assert holders(file) == 0, "it is not asked for again and again"
    assert not loop.timers


def test_many_processors_are_not_kept_awake_for_one_client(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil_module, "_all_cpus", lambda: CPUS_MAX + 1)
    vigil = vigil_on(Loop())
    vigil.begin()
    assert holders(file) == 0


def test_processors_that_we_may_not_use_count_too(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file keeps all of the machine's awake, however few a container has."""
    monkeypatch.undo()
    monkeypatch.setattr(vigil_module, "LATENCY_FILE", str(file))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1}, raising=False)
    vigil = vigil_on(Loop())
    vigil.begin()
    assert holders(file) == 0


@pytest.mark.parametrize("is_ending", [False, True])
def test_who_closes_it_leaves_no_file_and_no_timer(file: Path, is_ending: bool) -> None:
    """A loop that has ended calls nobody, and the process may go on without its broker."""
    loop = Loop()
    vigil = vigil_on(loop)
    vigil.begin()
    if is_ending:
        vigil.end()
    vigil.close()
    assert holders(file) == 0
    assert not [timer for timer in loop.timers if timer.callback is not None]
    vigil.begin()
    assert holders(file) == 0
