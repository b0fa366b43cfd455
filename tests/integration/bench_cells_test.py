"""Every cell of the benchmark works on a real broker, at a scale that takes a moment."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from bench.beside import Link, beside
from bench.brokers import Fleet
from bench.cells import CELLS
from bench.cold import evict
from bench.model import Cell, Scale, Target
from runnel.bench.pipeline import LoadError
from runnel.client.raw import Topic
from tests.support.patience import eventually

TINY = Scale(
    seconds=0.05,
    client_messages=1000,
    megabytes=5,
    samples=20,
    idle_s=0.2,
    commits=5000,
    groups=5,
    compacted_megabytes=600,  # more than one segment
)
TOO_LONG = ("1,000 partitions", "10,000 partitions", "5,000 connections")
NEEDS_MAVEN = ("Kafka's perf tool",)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    fleet = Fleet(tmp_path_factory.mktemp("bench"))
    try:
        yield fleet.start("runnel:os")
    finally:
        fleet.end()


def measured_in_ticks(name: str) -> bool:
    """CPU of next to no time may be none."""
    return any(word in name for word in ("CPU", "1,000 members"))


def short_cells() -> list[Cell]:
    return [
        cell
        for cell in CELLS
        if not any(
            word in measure.name for measure in cell.measures for word in TOO_LONG + NEEDS_MAVEN
        )
    ]


@pytest.mark.parametrize("cell", short_cells(), ids=lambda cell: cell.measures[0].name)
def test_a_cell_gives_a_figure_for_each_of_its_measures(cell: Cell, target: Target) -> None:
    figures = cell.run(target, TINY)
    assert list(figures) and set(figures) == {measure.name for measure in cell.measures}
    for name, figure in figures.items():
        assert figure.value > 0 or measured_in_ticks(name), name
        assert figure.cost is not None and figure.cost.rss_mb > 10, name


def count_until_told(link: Link, start: int) -> int:
    link.say_ready()
    while not link.is_over():
        start += 1
    return start


def fail(_link: Link, why: str) -> None:
    raise ValueError(why)


def test_work_beside_runs_until_it_is_told_and_gives_its_result() -> None:
    with beside(count_until_told, 5) as side:
        assert side.result() >= 5


def test_work_beside_that_fails_is_noticed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LoadError, match="work beside failed"), beside(fail, "on purpose"):
        pass
    assert "on purpose" in capfd.readouterr().err


def test_evicted_data_is_no_longer_in_memory(tmp_path: Path) -> None:
    """Goal: cold cells read from the disk. Method: read only what the kernel has at once.

    The kernel keeps a page that it holds itself just now: on a busy machine one call may not do.
    """
    topic = Topic("cold", bytes(16), 1)
    path = tmp_path / "cold-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(os.urandom(1 << 20))
    with path.open("rb") as file:
        assert in_memory(file, 1 << 19)
        eventually(lambda: evict(tmp_path, topic) == 1 << 20 and not in_memory(file, 1 << 19))


def in_memory(file: BinaryIO, position: int) -> bool:
    try:
        return os.preadv(file.fileno(), [bytearray(4096)], position, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False


def test_eviction_of_a_topic_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no segments"):
        evict(tmp_path, Topic("cold", bytes(16), 1))
