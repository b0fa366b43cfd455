"""Exactly-once copy under kills: the output is the input, in order, each message once.

    python -m tests.integration.exactly_once --runs 10 [--messages 100000]

A copier of its own process (`copier.py`, confluent-kafka) moves `input` to `output` in
transactions. Broker and copier are killed in turn with SIGKILL. Once a run the copier is stopped
in the middle (SIGSTOP) and another takes its transactional id; when the first goes on, it is a
zombie and must be refused. `--kafka` sets a real Kafka in the broker's place.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.copier import FAST, INPUT, OUTPUT, STUCK
from tests.support.kafka_tools import KafkaBroker
from tests.support.process import ROOT, BrokerProcess, environment
from tests.support.reading import place_of

PARTITIONS: Final = 4
TRANSACTIONAL_ID: Final = "the-copier"
INSTANCE_ID: Final = "copier-instance"
RUN_TIMEOUT_S: Final = 300.0
IDLE_S: Final = 0.02
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
Broker = BrokerProcess | KafkaBroker


class Copiers:
    """The copier of the moment, and the zombies before it."""

    def __init__(self, bootstrap: str, protocol: str, per_transaction: int, log: Path) -> None:
        self._command = [
            *(sys.executable, "-m", "tests.integration.copier", bootstrap),
            *("--transactional-id", TRANSACTIONAL_ID, "--protocol", protocol),
            *("--per-transaction", str(per_transaction)),
        ]
        if protocol == "classic":
            self._command += ["--instance-id", INSTANCE_ID]
        self._log = log
        self._zombies: list[subprocess.Popen[bytes]] = []
        self.counts: Counter[str] = Counter()
        self._current = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.counts["copiers started"] += 1
        name = f"copier-{self.counts['copiers started']}"
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*self._command, "--name", name],
                cwd=ROOT,
                env=environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def keep_one(self) -> None:
        """Start it anew if it ended."""
        status = self._current.poll()
        if status is not None:
            self.counts["copiers stuck" if status == STUCK else "copiers that ended"] += 1
            self._current = self._start()

    def kill(self) -> None:
        self._current.kill()
        self._current.wait()
        self.counts["copiers killed"] += 1
        self._current = self._start()

    def make_zombie(self) -> None:
        """The one of the moment stands still; its successor takes over."""
        self._current.send_signal(signal.SIGSTOP)
        self._zombies.append(self._current)
        self.counts["zombies"] += 1
        self._current = self._start()

    def wake_zombies(self) -> None:
        for zombie in self._zombies:
            if zombie.poll() is None:
                zombie.send_signal(signal.SIGCONT)

    def end(self) -> None:
        for process in (self._current, *self._zombies):
            if process.poll() is None:
                process.kill()
            process.wait()


def fill(bootstrap: str, messages: int) -> dict[int, list[int]]:
    """What is in the input, by partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **FAST})
    written: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    for number in range(messages):
        index = number % PARTITIONS
        written[index].append(number)
        producer.produce(INPUT, b"%d" % number, partition=index)
        if number % 1000 == 0:
            producer.poll(0.01)
    assert producer.flush(60) == 0
    return written


class Output:
    """Reads what is committed, from the start, for as long as the run takes."""

    def __init__(self, bootstrap: str) -> None:
        self.values: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                **FAST,
            }
        )
        self._consumer.assign([Position(OUTPUT, index, 0) for index in range(PARTITIONS)])

    @property
    def count(self) -> int:
        return sum(map(len, self.values.values()))

    def poll(self) -> None:
        for message in self._consumer.consume(2000, IDLE_S):
            if message.error() is None:
                index = place_of(message).partition
                self.values[index].append(int(message.value() or b"-1"))

    def drain(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.poll()

    def close(self) -> None:
        self._consumer.close()


def run(
    broker: Broker, log: Path, *, messages: int, kills: int, protocol: str,
    per_transaction: int, chance: random.Random,
) -> tuple[list[str], Counter[str]]:  # fmt: skip
    """What is wrong, and what happened."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for created in admin.create_topics(
        [NewTopic(topic, PARTITIONS, 1) for topic in (INPUT, OUTPUT)]
    ).values():
        created.result()
    expected = fill(broker.bootstrap, messages)
    output = Output(broker.bootstrap)
    copiers = Copiers(broker.bootstrap, protocol, per_transaction, log)
    strikes = [
        ("broker", "copier")[number % 2] for number in range(kills)
    ]  # fmt: skip
    strikes.insert(kills // 2, "zombie")
    deadline = time.monotonic() + RUN_TIMEOUT_S
    step, woken = messages // (len(strikes) + 1), False
    try:
        while output.count < messages and time.monotonic() < deadline:
            output.poll()
            copiers.keep_one()
            if strikes and output.count >= messages - step * len(strikes):
                time.sleep(chance.uniform(0, 0.3))
                _strike(strikes.pop(0), broker, copiers)
            if not woken and copiers.counts["zombies"] and chance.random() < 0.02:
                copiers.wake_zombies()
                woken = True
        copiers.wake_zombies()
        output.drain(3.0)
    finally:
        copiers.end()
        output.close()
    return _judge(expected, output.values), copiers.counts


def _strike(whom: str, broker: Broker, copiers: Copiers) -> None:
    if whom == "broker":
        broker.kill()
        broker.start()
        copiers.counts["brokers killed"] += 1
    elif whom == "copier":
        copiers.kill()
    else:
        copiers.make_zombie()


def _judge(expected: dict[int, list[int]], found: dict[int, list[int]]) -> list[str]:
    wrong: list[str] = []
    for index, values in expected.items():
        copied = found[index]
        if copied == values:
            continue
        doubled = [value for value, count in Counter(copied).items() if count > 1]
        missing = sorted(set(values) - set(copied))
        wrong.append(
            f"partition {index}: {len(copied)} of {len(values)}, {len(missing)} missing"
            f" {missing[:3]}, {len(doubled)} twice {doubled[:3]},"
            f" in order: {copied == sorted(copied)}"
        )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--per-transaction", type=int, default=750)
    parser.add_argument("--kills", type=int, default=6, help="of broker and copier together")
    parser.add_argument("--protocol", choices=("classic", "consumer", "both"), default="both")
    parser.add_argument("--kafka", action="store_true")
    options = parser.parse_args()
    failed = 0
    for number in range(options.runs):
        protocol = options.protocol
        if protocol == "both":
            protocol = ("classic", "consumer")[number % 2]
        with tempfile.TemporaryDirectory(prefix="exactly-once-") as folder:
            data_dir, log = Path(folder) / "data", Path(folder) / "copiers.log"
            broker: Broker = (
                KafkaBroker(data_dir, settings=SETTINGS)
                if options.kafka
                else BrokerProcess(data_dir, settings=SETTINGS)
            )
            began = time.monotonic()
            with broker:
                wrong, counts = run(
                    broker, log, messages=options.messages, kills=options.kills,
                    protocol=protocol, per_transaction=options.per_transaction,
                    chance=random.Random(number),
                )  # fmt: skip
            told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            print(
                f"run {number + 1} ({protocol}): {options.messages} messages,"
                f" {time.monotonic() - began:.0f} s, {told}: {'; '.join(wrong) or 'equal'}",
                flush=True,
            )
            if wrong:
                failed += 1
                print(log.read_text(errors="replace")[-2000:])
    print(f"{options.runs - failed} of {options.runs} runs: output equals input")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
