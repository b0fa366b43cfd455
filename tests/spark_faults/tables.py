"""Exactly once into tables while things die: kill -9 of each victim at each step of a batch.

    python -m tests.spark_faults.tables [--seeds 20] [--only delta-direct] [--keep FOLDER]

For each kind of table every victim at every step, then as many seeds more with a fault drawn from
them. After each the table holds the rows of the topic, each once, as a reader that had no part in
writing it finds them; no file is left that is not the table's.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.spark_faults.fill_table import ROWS_PER_BATCH
from tests.spark_faults.harness import (
    CHECKPOINT_WRITTEN,
    VICTIMS,
    Fault,
    Harness,
    difference,
    table,
)
from tests.support import tables
from tests.support.process import BrokerProcess

KINDS = (
    "delta-rows",
    "delta-direct",
    "iceberg-rows",
    "iceberg-direct",
    "parquet-rows",
    "parquet-direct",
)
STEPS = ("planned", "writing", "written", "table committed", CHECKPOINT_WRITTEN)
RENAMED = "renamed"  # of Parquet: files show in a listing, the log does not have them yet
PARTITIONS = 4
ROWS = 3 * ROWS_PER_BATCH


class Run:
    """One kind of table, and a topic that grows with every fault."""

    def __init__(self, folder: Path, broker: BrokerProcess, kind: str) -> None:
        self.steps = (*STEPS[:3], RENAMED, *STEPS[3:]) if "parquet" in kind else STEPS
        self._broker = broker
        self._topic = f"faults-{kind}"
        self._format, mode = kind.split("-")
        self._table = folder / kind / "table"
        self._sent: list[bytes] = []
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(self._topic, PARTITIONS, 1)])[self._topic].result(30)
        checkpoint = folder / kind / "checkpoint"
        program = ["-m", "tests.spark_faults.fill_table", broker.bootstrap, self._topic]
        program += [str(self._table), self._format, mode, str(checkpoint)]
        self.harness = Harness(folder / kind / "run", broker, program, checkpoint)

    def under(self, fault: Fault) -> str:
        """What the table of outcomes says of it."""
        self._grow()
        outcome = self.harness.run(fault)
        found = tables.read(self._format, self._table)["value"].to_pylist()
        lost, twice = difference(self._sent, found)
        if lost or twice:
            return f"LOST {lost} TWICE {twice}"
        committed = tables.committed_files(self._format, self._table)
        if left := tables.data_files(self._table) - committed:
            return f"LEFT {len(left)}"
        return f"ok, {outcome.tries} tries" if outcome.struck else "not reached"

    def _grow(self) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "log_level": 0})
        for number in range(len(self._sent), len(self._sent) + ROWS):
            value = b"row %d" % number
            producer.produce(self._topic, value, b"%d" % (number % 97))
            self._sent.append(value)
        producer.flush(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help="faults drawn after all of them")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--only", choices=KINDS, action="append", help="these kinds alone")
    parser.add_argument("--no-table", action="store_true", help="the seeds alone")
    parser.add_argument("--keep", type=Path, help="a folder for what the run leaves")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="spark-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with BrokerProcess(folder / "data") as broker:
            failed = sum(_run(given, folder, broker, kind) for kind in given.only or KINDS)
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    _say("every row once" if not failed else f"{failed} went wrong")
    return 1 if failed else 0


def _run(given: argparse.Namespace, folder: Path, broker: BrokerProcess, kind: str) -> int:
    run = Run(folder, broker, kind)
    outcomes: dict[tuple[str, str], str] = {}
    failed = 0
    with run.harness:
        for fault in [] if given.no_table else _all(run.steps):
            outcomes[fault.victim, fault.step] = told = run.under(fault)
            failed += not told.startswith("ok")
            _say(f"{kind}: {fault.victim} at {fault.step}: {told}")
        for seed in _seeds(given, kind):
            draw = random.Random(seed)
            fault = Fault(draw.choice(VICTIMS), draw.choice(run.steps), draw.randrange(3))
            told = run.under(fault)
            failed += not told.startswith("ok")
            _say(f"{kind}: seed {seed}: {fault.victim} at {fault.step}, {fault.nth}: {told}")
    if outcomes:
        _say(f"\n{kind}\n{table(outcomes, run.steps)}\n")
    return failed


def _all(steps: Sequence[str]) -> list[Fault]:
    return [Fault(victim, step) for step in steps for victim in VICTIMS]


def _seeds(given: argparse.Namespace, kind: str) -> list[int]:
    """The seeds are dealt out to the kinds, so that `--seeds 20` is 20 faults over all of them."""
    kinds: Sequence[str] = given.only or KINDS
    seeds = range(given.seed, given.seed + given.seeds)
    return [seed for seed in seeds if kinds[seed % len(kinds)] == kind]


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
