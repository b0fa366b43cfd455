"""Others are stopped, with all their processes, and go on whatever happens."""

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from bench.model import Broker, Target
from bench.stillness import still
from tests.support.patience import eventually

PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
    "print(child.pid, flush=True)\n"
    "input()"
)


def another(_folder: object) -> Broker:
    raise AssertionError("nobody wants one")


@pytest.fixture
def family() -> Iterator[list[psutil.Process]]:
    """A process and one below it, as a broker and its exporter."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        yield [psutil.Process(parent.pid), child]
        child.kill()
        parent.kill()


def are_stopped(processes: list[psutil.Process]) -> bool:
    states = {process.status() for process in processes}
    return states == {psutil.STATUS_STOPPED}


def are_going(processes: list[psutil.Process]) -> bool:
    return all(process.status() != psutil.STATUS_STOPPED for process in processes)


def test_a_broker_and_all_below_it_are_stopped_and_go_on(family: list[psutil.Process]) -> None:
    target = Target("kafka", ("127.0.0.1", 1), family[0].pid, another)
    with still([target]):
        eventually(lambda: are_stopped(family))  # a signal takes a moment
    eventually(lambda: are_going(family))


def test_they_go_on_after_a_failure(family: list[psutil.Process]) -> None:
    target = Target("kafka", ("127.0.0.1", 1), family[0].pid, another)
    with pytest.raises(ValueError, match="refused"), still([target]):
        eventually(lambda: are_stopped(family))
        raise ValueError("refused")
    eventually(lambda: are_going(family))


def test_a_broker_that_somebody_else_started_is_left_alone(family: list[psutil.Process]) -> None:
    with still([Target("theirs", ("127.0.0.1", 1), family[0].pid)]):
        time.sleep(0.05)
        assert are_going(family)


def test_one_whose_process_is_not_known_is_left_alone() -> None:
    with still([Target("elsewhere", ("127.0.0.1", 1))]):
        pass
