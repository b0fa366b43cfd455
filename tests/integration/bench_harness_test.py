"""The benchmark judges right: a broker made slower on purpose is slower, and the status says it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.process import ROOT, BrokerProcess, environment
from tests.support.slow_proxy import SlowProxy

DELAY_S = 0.01  # each way, well above what a busy machine adds
SMALL = ("--warm-cache", "1", "--warm-up", "0", "--rounds", "1", "--scale", "samples=100")
ONCE = ("--tail-tries", "1")  # what else the host of this machine does shall not make tests longer
CELL = ("--only", "sync produce p50", "--no-column")
TIMEOUT_S = 60.0


def command(results: Path, *arguments: str) -> list[str]:
    run = (sys.executable, "-m", "bench.run", *SMALL, *ONCE, *CELL)
    return [*run, "--results", str(results), *arguments]


def bench(results: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(results, *arguments),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def verdicts(results: Path) -> dict[str, dict[str, Any]]:
    (path,) = results.glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["measure"]: line for line in lines if line["kind"] == "verdict"}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """One broker behind two addresses: as it is, and slow."""
    with (
        BrokerProcess(tmp_path / "data") as broker,
        SlowProxy(broker.address, DELAY_S) as slow,
    ):
        yield f"plain={broker.bootstrap}/{broker.pid}", f"slow=127.0.0.1:{slow.address[1]}"


def test_a_slower_broker_is_reported_slower_and_misses(
    brokers: tuple[str, str], tmp_path: Path
) -> None:
    plain, slow = brokers
    done = bench(tmp_path / "results", "--reference", plain, "--subject", slow)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("sync produce p50"))
    assert "NO" in line.split()
    found = verdicts(tmp_path / "results")
    assert found["sync produce p50"]["compared"] > 1
    assert not found["sync produce p50"]["met"]


def test_a_faster_broker_meets_its_goals(brokers: tuple[str, str], tmp_path: Path) -> None:
    plain, slow = brokers
    done = bench(tmp_path / "results", "--reference", slow, "--subject", plain)
    assert done.returncode == 0, done.stdout + done.stderr
    found = verdicts(tmp_path / "results")
    assert {name: line["met"] for name, line in found.items()} == {
        "sync produce p50": True,
        "sync produce p99": True,
    }


def test_a_run_that_measures_nothing_has_failed(tmp_path: Path) -> None:
    gone = ("--reference", "gone=127.0.0.1:1", "--subject", "away=127.0.0.1:1")
    done = bench(tmp_path / "results", *gone)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.count("FAILED") == 2


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    words = ("--reference", "runnel:os", "--subject", "runnel:interval", "--warm-up", "60")
    process = subprocess.Popen(
        command(tmp_path / "results", *words),
        cwd=ROOT,
        env=environment({"TMPDIR": str(tmp_path)}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    children = started(process.pid, 2)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, told
    assert not [child for child in children if is_alive(child)]
    assert not list(tmp_path.glob("runnel-bench-*"))


def test_an_interrupted_run_shows_what_it_has(brokers: tuple[str, str], tmp_path: Path) -> None:
    plain, slow = brokers
    words = ("--reference", plain, "--subject", slow, "--rounds", "1000")
    process = subprocess.Popen(
        command(tmp_path / "results", *words),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "round 2" not in (line := process.stderr.readline()):
        assert line, "it ended by itself"
    os.kill(process.pid, signal.SIGINT)
    shown, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, told
    assert "interrupted; this is what there is" in told
    assert "sync produce p50" in shown
    assert verdicts(tmp_path / "results")["sync produce p50"]["compared"] > 1


def is_alive(process: psutil.Process) -> bool:
    """What has ended and was not asked for its status yet is not: its parent was faster."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def started(pid: int, count: int) -> list[psutil.Process]:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        children = psutil.Process(pid).children(recursive=True)
        if len(children) >= count:
            return children
        time.sleep(0.05)
    raise AssertionError(f"no {count} brokers within {TIMEOUT_S} s")
