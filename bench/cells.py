"""The named cells of the benchmark: what is measured, in which unit, and what the goal is.

A cell loads one target once and returns a figure for each of its measures. Loads that make data
delete their topics, so that every round starts on the same memory.
"""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench import clients, latency, load, restart
from tests.support.kafka_tools import free_port
from tests.support.process import BrokerProcess


class Target(NamedTuple):
    """A broker under load. `settings` is None for one that the benchmark did not start."""

    name: str
    address: tuple[str, int]
    pid: int | None = None
    settings: Mapping[str, str] | None = None


class Scale(NamedTuple):
    """How much each cell does: a fraction of a second to a few seconds."""

    requests: int = 100_000
    client_messages: int = 50_000
    megabytes: int = 1000
    samples: int = 3000
    partitions: int = 1000

    @classmethod
    def quick(cls) -> "Scale":
        return cls(20_000, 10_000, 200, 500, 200)


class Measure(NamedTuple):
    """`goal` is of the first form: what the path must already reach on two cores."""

    name: str
    unit: str
    goal: str = ""


Figures = dict[str, float]


class Cell(NamedTuple):
    measures: tuple[Measure, ...]
    run: Callable[[Target, Scale], Figures]
    starts_its_own: bool = False  # needs a broker that it may start and end


def _unbatched(connections: int) -> Cell:
    name = f"unbatched produce, {connections} connection{'s' * (connections > 1)}"

    def run(target: Target, scale: Scale) -> Figures:
        result = load.unbatched(target.address, connections=connections, requests=scale.requests)
        return {name: result.requests_per_second, "generator busy": result.busy}

    return Cell((Measure(name, "requests/s"),), run)


def _client_unbatched() -> Cell:
    name = "unbatched produce, librdkafka"

    def run(target: Target, scale: Scale) -> Figures:
        result = clients.unbatched(target.address, messages=scale.client_messages)
        return {name: result.requests_per_second, "generator busy": result.busy}

    return Cell((Measure(name, "requests/s", ">= 25,000"),), run)


def _produce(connections: int) -> Cell:
    name = f"produce 1 KiB, {connections} connection{'s' * (connections > 1)}"

    def run(target: Target, scale: Scale) -> Figures:
        result = load.produce(target.address, connections=connections, megabytes=scale.megabytes)
        return {name: result.megabytes_per_second, "generator busy": result.busy}

    return Cell((Measure(name, "MB/s"),), run)


def _client_produce() -> Cell:
    name = "produce 1 KiB, librdkafka"

    def run(target: Target, scale: Scale) -> Figures:
        result = clients.produce(target.address, megabytes=scale.megabytes)
        return {name: result.megabytes_per_second, "generator busy": result.busy}

    return Cell((Measure(name, "MB/s", ">= 300"),), run)


def _fetch(connections: int) -> Cell:
    name = f"fetch, {connections} connection{'s' * (connections > 1)}"

    def run(target: Target, scale: Scale) -> Figures:
        result = load.fetch(target.address, connections=connections, megabytes=scale.megabytes)
        return {name: result.megabytes_per_second, "generator busy": result.busy}

    return Cell((Measure(name, "MB/s"),), run)


def _latency(name: str, measure: Callable[..., latency.Latency]) -> Cell:
    def run(target: Target, scale: Scale) -> Figures:
        found = measure(target.address, samples=scale.samples)
        return {f"{name} p50": found.p50, f"{name} p99": found.p99, f"{name} p99.9": found.p999}

    return Cell(tuple(Measure(f"{name} {part}", "us") for part in ("p50", "p99", "p99.9")), run)


def _restart() -> Cell:
    start, clean, killed = (
        Measure("start to first Metadata answer", "ms", "<= 300"),
        Measure("reopen 1,000 partitions, clean stop", "s", "< 2"),
        Measure("reopen 1,000 partitions, kill -9", "s", "< 2"),
    )

    def run(target: Target, scale: Scale) -> Figures:
        assert target.settings is not None
        with tempfile.TemporaryDirectory(prefix="runnel-bench-") as folder:
            broker = BrokerProcess(
                Path(folder) / "data", settings=target.settings, port=free_port()
            )
            figures = {start.name: restart.start_ms(broker)}
            try:
                for measure, is_clean in ((clean, True), (killed, False)):
                    figures[measure.name] = restart.reopen_s(
                        broker, partitions=scale.partitions, clean=is_clean
                    )
            finally:
                broker.kill()
        return figures

    return Cell((start, clean, killed), run, starts_its_own=True)


CELLS: tuple[Cell, ...] = (
    _unbatched(1),
    _unbatched(4),
    _client_unbatched(),
    _client_produce(),
    _produce(1),
    _produce(4),
    _fetch(1),
    _fetch(4),
    _latency("sync produce", latency.sync_produce),
    _latency("end to end", latency.end_to_end),
    _restart(),
)
