"""Exactly once to topics while things die: kill -9 of each victim at each step of a batch.

    python -m tests.spark_faults.topics [--seeds 20] [--seed N] [--no-table] [--keep FOLDER]

First every victim at every step, then as many seeds more with a fault drawn from them. After each
the target holds the rows of the source, each once; the table says how many tries it took.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.spark_faults.copy_topic import ROWS_PER_BATCH
from tests.spark_faults.harness import (
    CHECKPOINT_WRITTEN,
    VICTIMS,
    Fault,
    Harness,
    difference,
    table,
)
from tests.support.process import BrokerProcess
from tests.support.spark_reading import values_in

STEPS = (
    "planned",
    "writing",
    "written",
    "decision written",
    "half of the transactions ended",
    "transactions ended",
    CHECKPOINT_WRITTEN,
)
SOURCE, TARGET = "faults-in", "faults-out"
PARTITIONS = 4
ROWS = 3 * ROWS_PER_BATCH
ROWS_PER_FETCH = 40  # a fetch brings a batch of the producer's, as it takes no more


class Run:
    """A broker, a source that grows with every fault, and a target to compare it with."""

    def __init__(self, folder: Path, broker: BrokerProcess) -> None:
        self._broker = broker
        self._sent: list[bytes] = []
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (SOURCE, TARGET)]
        for future in admin.create_topics(topics).values():
            future.result(30)
        checkpoint = folder / "checkpoint"
        program = ["-m", "tests.spark_faults.copy_topic", broker.bootstrap, SOURCE, TARGET]
        self.harness = Harness(folder / "run", broker, [*program, str(checkpoint)], checkpoint)

    def under(self, fault: Fault) -> str:
        """What the table says of it; begins with `LOST` or `TWICE` if it went wrong."""
        self._grow()
        outcome = self.harness.run(fault)
        lost, twice = difference(self._sent, values_in(self._broker, TARGET))
        if lost or twice:
            return f"LOST {lost} TWICE {twice}"
        return f"ok, {outcome.tries} tries" if outcome.struck else "not reached"

    def _grow(self) -> None:
        settings = {"bootstrap.servers": self._broker.bootstrap, "log_level": 0}
        producer = Producer({**settings, "batch.num.messages": ROWS_PER_FETCH})
        for number in range(len(self._sent), len(self._sent) + ROWS):
            value = b"row %d" % number
            producer.produce(SOURCE, value, b"%d" % (number % 97))
            self._sent.append(value)
        producer.flush(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help="faults drawn after all of them")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--keep", type=Path, help="a folder for what the run leaves")
    parser.add_argument("--no-table", action="store_true", help="the seeds alone")
    parser.add_argument("--only", choices=VICTIMS, help="of the table, this victim alone")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="spark-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _run(given, folder)
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(given: argparse.Namespace, folder: Path) -> int:
    outcomes: dict[tuple[str, str], str] = {}
    failed = 0
    with BrokerProcess(folder / "data") as broker:
        run = Run(folder, broker)
        with run.harness:
            for step in () if given.no_table else STEPS:
                for victim in (given.only,) if given.only else VICTIMS:
                    outcomes[victim, step] = told = run.under(Fault(victim, step))
                    failed += not told.startswith("ok")
                    _say(f"{victim:>7} at {step}: {told}")
            for seed in range(given.seed, given.seed + given.seeds):
                draw = random.Random(seed)
                fault = Fault(draw.choice(VICTIMS), draw.choice(STEPS), draw.randrange(3))
                told = run.under(fault)
                failed += not told.startswith("ok")
                _say(f"seed {seed}: {fault.victim} at {fault.step}, {fault.nth}: {told}")
    _say(table(outcomes, STEPS))
    _say("every row once" if not failed else f"{failed} went wrong")
    return 1 if failed else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
