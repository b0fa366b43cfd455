"""The runner without Spark: turns, retries, stopping, and what another process sees of it."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runnel.pipelines import origin, runner, status
from runnel.pipelines.checkpoint import Reached, reached
from runnel.pipelines.failures import DISK, MISTAKE, PASSING, UNKNOWN, PipelineError, classify
from runnel.pipelines.home import HISTORY_LINES_MAX, BusyError, Home
from runnel.pipelines.kind import Flow, Kind, Report, Run, Turn, Turns
from runnel.pipelines.measuring import Batch
from runnel.pipelines.runner import Runner
from runnel.pipelines.skips import LOG_BYTES_MAX, Skips
from runnel.pipelines.spec import Every, Source, Spec, Target
from runnel.pipelines.status import Status
from runnel.spark.lake.lake_options import TableError
from runnel.types import TopicPartition

SPEC = Spec("orders", source=Source(("orders",)), to=Target(table="/lake/orders"))


class Watched:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: list[str] = []

    def ready(self) -> None:
        pass

    def changed(self, status: Status, batch: Batch | None) -> None:
        if self.states[-1:] != [status.state]:
            self.states.append(status.state)

    def line(self, text: str) -> None:
        self.lines.append(text)


def kind_of(
    step: Callable[[Turn], Report], between: Callable[[], Report | None] | None = None
) -> Kind:
    def build(run: Run) -> Flow:
        return Turns(step, between, between_every_ms=0)

    return Kind("turns", "for tests", "", lambda spec: (), build, uses_spark=False)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "orders")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BACKOFF_FIRST_S", 0.01)


def test_once_until_nothing_is_left(home: Home) -> None:
    between: list[int] = []

    def step(turn: Turn) -> Report:
        return Report(rows=10, text=f"turn {turn.number}", has_more=turn.number < 2, lag=0)

    def upkeep() -> Report:
        between.append(1)
        return Report(text="tidied up")

    watch = Watched()
    done = Runner(SPEC, kind_of(step, upkeep), home, watch).run()
    assert (done.state, done.rows, done.batches, done.note) == ("finished", 30, 3, "tidied up")
    assert watch.lines[:1] == ["turn 0"]
    assert len(between) == 3
    seen = status.read(home)
    assert seen is not None and seen.state == "finished" and seen.rows == 30
    assert [run["state"] for run in home.history()] == ["finished"]


def test_what_passes_is_tried_again_and_what_works_counts_anew(home: Home) -> None:
    calls: list[int] = []

    def step(turn: Turn) -> Report:
        calls.append(turn.number)
        if len(calls) in (1, 2, 4, 5):
            raise ConnectionError("Connection refused by localhost:9092")
        return Report(rows=1, has_more=len(calls) < 6)

    watch = Watched()
    spec = Spec("orders", retries=2)
    done = Runner(spec, kind_of(step), home, watch).run()
    assert (done.state, done.rows, done.retries) == ("finished", 2, 4)
    assert "Connection refused by localhost:9092; try 1 of 2 in 0 s" in watch.lines
    assert "retrying" in watch.states
    assert done.error == "Connection refused by localhost:9092"


def test_retries_end(home: Home) -> None:
    def step(turn: Turn) -> Report:
        raise ConnectionError("Connection refused")

    with pytest.raises(PipelineError, match=r"Connection refused \(tried 3 times\)"):
        Runner(Spec("orders", retries=2), kind_of(step), home, Watched()).run()
    seen = status.read(home)
    assert seen is not None and seen.state == "failed" and "tried 3 times" in seen.error


def test_a_full_disk_ends_it_at_once(home: Home) -> None:
    def step(turn: Turn) -> Report:
        raise OSError(28, "No space left on device", "/lake/part-1")

    with pytest.raises(PipelineError, match=r"the disk is full .*make room, then run it again"):
        Runner(SPEC, kind_of(step), home, Watched()).run()


def test_upkeep_that_fails_does_not_stop_it(home: Home) -> None:
    def upkeep() -> Report:
        raise RuntimeError("no such file")

    watch = Watched()
    done = Runner(SPEC, kind_of(lambda turn: Report(rows=1), upkeep), home, watch).run()
    assert done.state == "finished" and done.error == "RuntimeError: no such file"
    assert watch.lines == ["between batches: RuntimeError: no such file"]


def test_stop_ends_a_wait_at_once(home: Home) -> None:
    spec = Spec("orders", every=Every("span", 3_600_000))
    turned = threading.Event()

    def step(turn: Turn) -> Report:
        turned.set()
        return Report(rows=1)

    running = Runner(spec, kind_of(step), home, Watched())
    thread = threading.Thread(target=running.run)
    thread.start()
    assert turned.wait(10)
    running.stop()
    thread.join(10)
    assert not thread.is_alive() and running.status.state == "stopped"


def test_two_runs_of_one_pipeline_refuse(home: Home) -> None:
    with home.claimed(), pytest.raises(BusyError, match=f"process {os.getpid()} runs it"):
        Runner(SPEC, kind_of(lambda turn: Report()), home, Watched()).run()
    Runner(SPEC, kind_of(lambda turn: Report()), home, Watched()).run()


def test_a_process_that_was_killed_is_seen_as_crashed(home: Home) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from runnel.pipelines import status\n"
        "from runnel.pipelines.home import Home\n"
        "home = Home(Path(sys.argv[1]))\n"
        "with home.claimed():\n"
        "    one = status.Status.of_this_process('orders', 'table', 'f', 'once')\n"
        "    status.write(home, one)\n"
        "    print('ready', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(home.folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        seen = status.read(home)
        assert seen is not None and seen.state == "starting" and seen.is_alive
        with pytest.raises(BusyError, match=f"process {process.pid} runs it"), home.claimed():
            pass
    finally:
        process.kill()
        process.communicate()
    seen = status.read(home)
    assert seen is not None and seen.state == "crashed"

    # The same number, but of a process that was started later.
    document = json.loads(home.status_file.read_text()) | {"pid": os.getpid()}
    home.write(home.status_file, document)
    seen = status.read(home)
    assert seen is not None and seen.state == "crashed"
    with home.claimed():
        pass


def test_the_jvm_of_a_killed_run_is_waited_for(home: Home) -> None:
    home.folder.mkdir(parents=True)
    jvm = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    home.note_jvm(jvm.pid)
    ended: list[float] = []

    def end() -> None:
        time.sleep(0.3)
        ended.append(time.monotonic())
        jvm.kill()
        jvm.wait()

    thread = threading.Thread(target=end)
    thread.start()
    with home.claimed():
        assert ended
    thread.join()


def test_history_is_bounded(home: Home) -> None:
    home.folder.mkdir(parents=True)
    for number in range(HISTORY_LINES_MAX + 5):
        home.remember({"run": number})
    assert [run["run"] for run in home.history()][:: HISTORY_LINES_MAX - 1] == [
        5,
        HISTORY_LINES_MAX + 4,
    ]


@pytest.mark.parametrize(
    ("changed", "needs_reset", "words"),
    [
        ({"topics": ["orders", "returns"]}, False, "from has returns as well: read from its"),
        ({"topics": []}, True, "from no longer names orders"),
        ({"kind": "dedup"}, True, "kind was table, is dedup"),
        ({"to_table": "/lake/other"}, False, "it gets what is read from now on"),
        ({"transform": "other"}, False, "transform has changed: it applies to what is read from"),
    ],
)
def test_a_changed_file_is_explained(
    changed: dict[str, object], needs_reset: bool, words: str
) -> None:
    was = origin.told(SPEC)
    (change,) = origin.changes(was, was | changed, has_state=False)
    assert change.needs_reset == needs_reset
    assert words in f"{change.what}: {change.meaning}"


def test_a_changed_kind_is_refused_before_anything_runs(home: Home) -> None:
    home.folder.mkdir(parents=True)
    origin.write(home, origin.Origin(spec=origin.told(SPEC) | {"kind": "dedup"}))
    with pytest.raises(PipelineError, match=r"kind was dedup, is table .* reset orders") as failed:
        Runner(SPEC, kind_of(lambda turn: Report()), home, Watched()).run()
    assert failed.value.failure.sort == MISTAKE


def test_state_of_a_newer_version_is_refused(home: Home) -> None:
    home.folder.mkdir(parents=True)
    home.write(home.spec_file, {"version": 99})
    with pytest.raises(PipelineError, match="written by a newer Runnel"):
        Runner(SPEC, kind_of(lambda turn: Report()), home, Watched()).run()


def test_an_error_out_of_a_traceback_of_spark() -> None:
    text = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_ERROR] x
Traceback (most recent call last):
  File "a.py", line 3, in read
runnel.arrow.errors.OptionError: unknown option subscibe; did you mean subscribe?
 SQLSTATE: XXKST"""
    failure = classify(SPEC, RuntimeError(text))
    assert failure.sort == MISTAKE
    assert failure.text == "unknown option subscibe; did you mean subscribe?"
    plain = """[FOREACH_BATCH_USER_FUNCTION_ERROR] Traceback (most recent call last):
pyspark.errors.exceptions.captured.AnalysisException: [X] Failed: Traceback (most recent call last):
  File "transforms.py", line 3, in change
Exception: no such customer
 SQLSTATE: 38000"""
    assert classify(SPEC, RuntimeError(plain)).text == "Exception: no such customer"
    thrown = f"An exception was thrown from the Python worker: {plain}"
    assert classify(SPEC, RuntimeError(thrown)).sort == UNKNOWN
    died = RuntimeError("Python worker exited unexpectedly (crashed)")
    assert classify(SPEC, died).sort == PASSING
    lost = TableError("table has batch 4 of query orders from another checkpoint")
    assert "'runnel pipeline reset orders --to WHERE'" in classify(SPEC, lost).text
    wrapped = RuntimeError("java.io.IOException: No space left on device\n\tat java.base/x")
    assert classify(SPEC, wrapped).sort == DISK


def test_a_status_that_cannot_be_written_stops_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(home: Home, status: Status) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(status, "write", full)
    watch = Watched()
    assert Runner(SPEC, kind_of(lambda turn: Report(rows=1)), home, watch).run().rows == 1
    assert [line for line in watch.lines if "cannot be written: No space left" in line]


def test_ranges_that_were_skipped_are_told_once(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    skips = Skips(log)
    assert skips.new() == []
    line = (
        "failOnDataLoss is false: startingOffsets: expired offsets: orders-0 begins at 33, 20 was"
    )
    line += " to be read; the read goes on with what is there\n"
    log.write_text(f"WARN x\n{line}{line}failOnDataLoss is fal")
    assert skips.new() == ["offsets 20 to 32 of orders-0"]
    with log.open("a") as file:
        file.write("se: offsets 1 to 2 of b-0 cannot be read: gone; they are skipped\n")
    assert skips.new() == ["offsets 1 to 2 of b-0 cannot be read: gone"]
    assert skips.new() == []
    with log.open("a") as file:
        file.write("x" * LOG_BYTES_MAX + "\n")
    assert skips.new() == [] and log.stat().st_size == 0


def test_how_far_a_checkpoint_is(tmp_path: Path) -> None:
    assert reached(tmp_path) == Reached(None, {}, has_state=False)
    for name, batches in (("offsets", (8, 9, 10)), ("commits", (8, 9))):
        (tmp_path / name).mkdir()
        for batch in batches:
            content = (
                f'v1\n{{"conf": {{}}}}\n{{"a": {{"0": {batch}}}, "@topicIds": {{"a": "x"}}}}\n-'
            )
            (tmp_path / name / str(batch)).write_text(content)
            (tmp_path / name / f".{batch}.crc").touch()
    (tmp_path / "state").mkdir()
    wanted = Reached(9, {TopicPartition("a", 0): 9}, has_state=True, planned=10)
    assert reached(tmp_path) == wanted
