"""Rises fail, falls are told, and a baseline is recorded where there is none. Needs no valgrind."""

import json
import platform
from pathlib import Path

import pytest

from bench.ratchet.baselines import settle
from bench.ratchet.counting import CountingError, machine_key, read_counts
from bench.ratchet.parts import PARTS, Part

HERE = "python 3.11.7, uvloop 0.23.0, glibc 2.36, x86_64"
ELSEWHERE = "python 3.12.1, uvloop 0.23.0, glibc 2.36, x86_64"
BASELINE = {"produce": 100_000, "fetch": 50_000}


class Ratchet:
    """A file of baselines and what was said about it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "baselines.json"
        self.said = ""

    def settle(self, counts: dict[str, int], *, key: str = HERE, accept: bool = False) -> int:
        lines: list[str] = []
        status = settle(self.path, key, counts, accept=accept, say=lines.append)
        self.said = "\n".join(lines)
        return status

    @property
    def kept(self) -> object:
        return json.loads(self.path.read_text())


@pytest.fixture
def ratchet(tmp_path: Path) -> Ratchet:
    made = Ratchet(tmp_path)
    made.path.write_text(json.dumps({HERE: BASELINE}))
    return made


@pytest.mark.parametrize("produce", [97_001, 100_000, 102_999])
def test_a_change_within_the_tolerance_passes(ratchet: Ratchet, produce: int) -> None:
    assert ratchet.settle({**BASELINE, "produce": produce}) == 0
    assert ratchet.kept == {HERE: BASELINE}
    assert "ROSE" not in ratchet.said
    assert "FELL" not in ratchet.said


def test_a_rise_fails_and_says_which_and_how_much_and_how_to_accept(ratchet: Ratchet) -> None:
    assert ratchet.settle({**BASELINE, "fetch": 52_000}) == 1
    assert "ROSE: 'fetch' by 4.0%, from 50,000 to 52,000" in ratchet.said
    assert "ROSE: 'produce'" not in ratchet.said
    assert "make ratchet ARGS=--accept" in ratchet.said
    assert ratchet.kept == {HERE: BASELINE}


def test_small_rises_add_up(ratchet: Ratchet) -> None:
    assert ratchet.settle({**BASELINE, "produce": 102_000}) == 0
    assert ratchet.settle({**BASELINE, "produce": 104_000}) == 1


def test_a_fall_passes_and_asks_for_a_lower_baseline(ratchet: Ratchet) -> None:
    assert ratchet.settle({**BASELINE, "produce": 90_000}) == 0
    assert "FELL: 'produce' by 10.0%" in ratchet.said
    assert "make ratchet ARGS=--accept" in ratchet.said
    assert ratchet.kept == {HERE: BASELINE}


@pytest.mark.parametrize("produce", [90_000, 120_000])
def test_what_is_accepted_is_the_baseline(ratchet: Ratchet, produce: int) -> None:
    counts = {**BASELINE, "produce": produce}
    assert ratchet.settle(counts, accept=True) == 0
    assert ratchet.kept == {HERE: counts}
    assert ratchet.settle(counts) == 0


def test_another_machine_gets_a_baseline_of_its_own(ratchet: Ratchet) -> None:
    counts = {"produce": 300_000, "fetch": 10_000}
    assert ratchet.settle(counts, key=ELSEWHERE) == 0
    assert "NO BASELINE for 2 of 2 parts" in ratchet.said
    assert "RECORDED in baselines.json" in ratchet.said
    assert ratchet.kept == {HERE: BASELINE, ELSEWHERE: counts}
    assert ratchet.settle({**counts, "produce": 310_000}, key=ELSEWHERE) == 1


def test_the_first_run_makes_the_file(tmp_path: Path) -> None:
    ratchet = Ratchet(tmp_path)
    assert ratchet.settle(BASELINE) == 0
    assert ratchet.kept == {HERE: BASELINE}


def test_a_new_part_is_recorded_and_the_others_are_still_compared(ratchet: Ratchet) -> None:
    assert ratchet.settle({"produce": 104_000, "fetch": 49_000, "parked": 7}) == 1
    assert "NO BASELINE for 1 of 3 parts" in ratchet.said
    assert ratchet.kept == {HERE: {**BASELINE, "parked": 7}}


def test_every_second_dump_is_a_part(tmp_path: Path) -> None:
    parts = [Part("first", "topic", 10, lambda _topic, _count: [])]
    parts.append(parts[0]._replace(name="second", round_count=2))
    for number, total in enumerate((9999, 120, 8888, 50), start=1):
        (tmp_path / f"dump.{number}").write_text(f"events: Ir\nfn=(1)\n0 3\ntotals: {total}\n")
    (tmp_path / "dump").write_text("totals: 7777\n")
    assert read_counts(tmp_path, parts) == {"first": 12, "second": 25}
    (tmp_path / "dump.3").unlink()
    with pytest.raises(CountingError, match="3 dumps of 4"):
        read_counts(tmp_path, parts)


def test_the_key_names_what_the_count_depends_on() -> None:
    for word in (platform.python_version(), platform.libc_ver()[1], platform.machine()):
        assert word in machine_key()


def test_parts_have_names_of_their_own() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)
