"""The named cells of the benchmark: what is measured, in which unit, and what the goal is.

A cell loads one target once and returns a figure for each of its measures. Loads that make data
delete their topics, so that every round starts on the same memory.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import clients, latency, load, restart
from bench.load import Result
from bench.model import Cell, Figure, Figures, Measure, Scale, Target

REOPENED_PARTITIONS = 1000


def requests_cell(name: str, run: Callable[[Target, Scale], Result]) -> Cell:
    def figures(target: Target, scale: Scale) -> Figures:
        result = run(target, scale)
        cpu = None if result.cost is None else result.cost.cpu_s / result.request_count * 1e6
        return {name: Figure(result.requests_per_second, cpu, result.busy, result.cost)}

    return Cell((Measure(name, "requests/s"),), figures)


def megabytes_cell(name: str, run: Callable[[Target, Scale], Result]) -> Cell:
    def figures(target: Target, scale: Scale) -> Figures:
        result = run(target, scale)
        cpu = None if result.cost is None else result.cost.cpu_s / result.byte_count * 1e9
        return {name: Figure(result.megabytes_per_second, cpu, result.busy, result.cost)}

    return Cell((Measure(name, "MB/s"),), figures)


def latency_cell(name: str, run: Callable[[Target, Scale], latency.Latency]) -> Cell:
    names = [f"{name} {part}" for part in ("p50", "p99", "p99.9")]

    def figures(target: Target, scale: Scale) -> Figures:
        return dict(zip(names, map(Figure, run(target, scale)), strict=True))

    return Cell(tuple(Measure(each, "us") for each in names), figures)


def _unbatched(connections: int) -> Cell:
    return requests_cell(
        f"unbatched produce, {_connections(connections)}",
        lambda target, scale: load.unbatched(
            target.address, connections=connections, requests=scale.requests, pid=target.pid
        ),
    )


def _produce(connections: int) -> Cell:
    return megabytes_cell(
        f"produce 1 KiB, {_connections(connections)}",
        lambda target, scale: load.produce(
            target.address, connections=connections, megabytes=scale.megabytes, pid=target.pid
        ),
    )


def _fetch(connections: int) -> Cell:
    return megabytes_cell(
        f"fetch, {_connections(connections)}",
        lambda target, scale: load.fetch(
            target.address, connections=connections, megabytes=scale.megabytes, pid=target.pid
        ),
    )


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


def _restart() -> Cell:
    start, clean, killed = (
        Measure("start to first Metadata answer", "ms"),
        Measure(f"reopen {REOPENED_PARTITIONS:,} partitions, clean stop", "s"),
        Measure(f"reopen {REOPENED_PARTITIONS:,} partitions, kill -9", "s"),
    )

    def run(target: Target, _scale: Scale) -> Figures:
        assert target.another is not None
        with tempfile.TemporaryDirectory(prefix="runnel-bench-") as folder:
            broker = target.another(Path(folder))
            try:
                figures = {start.name: Figure(restart.start_ms(broker))}
                for measure, is_clean in ((clean, True), (killed, False)):
                    seconds = restart.reopen_s(
                        broker, partitions=REOPENED_PARTITIONS, clean=is_clean
                    )
                    figures[measure.name] = Figure(seconds)
            finally:
                broker.kill()
        return figures

    return Cell((start, clean, killed), run, starts_its_own=True)


CELLS: tuple[Cell, ...] = (
    _unbatched(1),
    _unbatched(4),
    requests_cell(
        "unbatched produce, librdkafka",
        lambda target, scale: clients.unbatched(
            target.address, messages=scale.client_messages, pid=target.pid
        ),
    ),
    megabytes_cell(
        "produce 1 KiB, librdkafka",
        lambda target, scale: clients.produce(
            target.address, megabytes=scale.megabytes, pid=target.pid
        ),
    ),
    _produce(1),
    _produce(4),
    _fetch(1),
    _fetch(4),
    latency_cell(
        "sync produce",
        lambda target, scale: latency.sync_produce(target.address, samples=scale.samples),
    ),
    latency_cell(
        "end to end",
        lambda target, scale: latency.end_to_end(target.address, samples=scale.samples),
    ),
    _restart(),
)
