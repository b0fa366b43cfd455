"""The brokers of a run: each is started here, and all are ended here, however the run ends.

A broker is named by a word: `kafka`, `runnel:os` (or another durability), or
`name=host:port/pid` for one that already runs; without the pid there is no CPU and no memory.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import psutil

from bench.kafka import Kafka
from bench.model import Broker, Target
from runnel.client.cluster import addresses_of
from runnel.client.raw import ClosedError, WireClient
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.kafka_tools import free_port
from tests.support.process import BrokerError, BrokerProcess

# Deleted topics give their page cache back before the next load, and the first member of a group
# does not wait for others, as in the Kafka beside it; all else is as shipped.
RUNNEL_SETTINGS = {
    "log.segment.delete.delay.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
DURABILITIES = ("os", "interval", "ack")
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 300.0  # with ten thousand partitions to sync
METADATA_VERSION = 12

Make = Callable[[Path], Broker]


def _runnel(settings: Mapping[str, str], data_dir: Path) -> Broker:
    return BrokerProcess(
        data_dir,
        settings=settings,
        port=free_port(),
        metrics=True,
        stop_timeout_s=STOP_TIMEOUT_S,
    )


def maker(word: str) -> Make:
    """Raises ValueError for a word that names no broker."""
    kind, _, durability = word.partition(":")
    if word == "kafka":
        return Kafka
    if kind == "runnel" and durability in DURABILITIES:
        return partial(_runnel, {**RUNNEL_SETTINGS, "runnel.durability": durability})
    raise ValueError(f"{word!r} is neither kafka, runnel:DURABILITY nor NAME=HOST:PORT/PID")


def ensure_word(word: str) -> str:
    """The same word. Raises ValueError if `Fleet.start` would not understand it."""
    if "=" in word:
        _running(word)
    else:
        maker(word)
    return word


def _running(word: str) -> Target:
    name, _, place = word.partition("=")
    address, _, pid = place.partition("/")
    return Target(name, addresses_of(address)[0], int(pid) if pid else None)


class Fleet:
    """Makes brokers in a folder and remembers them, also those that cells make for themselves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Broker] = []

    def start(self, word: str) -> Target:
        """Returns when the broker answers. Raises BrokerError."""
        if "=" in word:
            return _running(word)
        make = maker(word)
        data_dir = self._folder / word.replace(":", "-")
        broker = self._remembered(make, data_dir)
        broker.spawn()
        await_answer(broker)
        name = word.replace(":", " ")
        return Target(name, broker.address, broker.pid, partial(self._another, make), data_dir)

    def _another(self, make: Make, folder: Path) -> Broker:
        return self._remembered(make, folder / "data")

    def _remembered(self, make: Make, data_dir: Path) -> Broker:
        broker = make(data_dir)
        self._made.append(broker)
        return broker

    def end(self) -> None:
        """At once, not in order: nobody reads their data again. Also what cells left behind."""
        for broker in self._made:
            if broker.is_running:
                broker.kill()
        for process in psutil.Process().children(recursive=True):
            try:
                process.kill()
                process.wait(READY_TIMEOUT_S)
            except psutil.NoSuchProcess:
                continue  # it ended by itself


def await_answer(broker: Broker) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and broker.is_running:
        try:
            with WireClient(broker.address, timeout_s=READY_TIMEOUT_S) as client:
                if client.call(MetadataRequest(topics=[]), version=METADATA_VERSION).brokers:
                    return
        except (ConnectionError, ClosedError):
            pass  # not there yet
        time.sleep(0.01)
    raise BrokerError(f"the broker does not answer:\n{broker.log}")
