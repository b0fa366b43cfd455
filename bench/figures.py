"""From what a load measured to the figures of a cell: names, units, and what it cost the broker."""

from collections.abc import Callable

from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench.latency import Latency
from runnel.bench.load import Result
from runnel.bench.usage import Cost, Usage

REQUESTS, MEGABYTES, MICROSECONDS = "requests/s", "MB/s", "us"


def requests_cell(
    name: str, run: Callable[[Target, Scale], Result], *, is_quick: bool = True
) -> Cell:
    def figures(target: Target, scale: Scale) -> Figures:
        return {name: requests_figure(run(target, scale))}

    return Cell((Measure(name, REQUESTS),), figures, is_quick=is_quick)


def megabytes_cell(
    name: str, run: Callable[[Target, Scale], Result | None], *, is_quick: bool = True
) -> Cell:
    """`run` gives None where the target does not allow it."""

    def figures(target: Target, scale: Scale) -> Figures:
        result = run(target, scale)
        return {} if result is None else {name: megabytes_figure(result)}

    return Cell((Measure(name, MEGABYTES),), figures, is_quick=is_quick)


def latency_cell(
    name: str, run: Callable[[Target, Scale], Latency], *, is_quick: bool = True
) -> Cell:
    names = [f"{name} {part}" for part in ("p50", "p99", "p99.9")]

    def figures(target: Target, scale: Scale) -> Figures:
        usage = Usage(target.pid)
        measured = run(target, scale)
        return latency_figures(name, measured, usage.cost())

    return Cell(tuple(Measure(each, MICROSECONDS) for each in names), figures, is_quick=is_quick)


def requests_figure(result: Result) -> Figure:
    """CPU in microseconds per request."""
    cost = result.cost
    cpu = None if cost is None else cost.cpu_s / result.request_count * 1e6
    return Figure(result.requests_per_second, cpu, result.busy, cost)


def megabytes_figure(result: Result) -> Figure:
    """CPU in seconds per GB."""
    cost = result.cost
    cpu = None if cost is None else cost.cpu_s / result.byte_count * 1e9
    return Figure(result.megabytes_per_second, cpu, result.busy, cost)


def latency_figures(name: str, measured: Latency, cost: Cost | None) -> Figures:
    return {
        f"{name} p50": Figure(measured.p50, cost=cost),
        f"{name} p99": Figure(measured.p99, cost=cost),
        f"{name} p99.9": Figure(measured.p999, cost=cost),
    }
