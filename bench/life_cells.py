"""Cells of a broker's life: start, reopening, what many partitions take, what idling takes."""

import os

from bench import growth, idle, restart, scraping
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench.usage import Usage

THOUSAND, TEN_THOUSAND = 1000, 10_000


def _start() -> Cell:
    measure = Measure("start to first answer", "ms")

    def run(target: Target, _scale: Scale) -> Figures:
        with restart.own_broker(target) as broker:
            answered = restart.start(broker)
        return {measure.name: Figure(answered.seconds * 1e3, cost=answered.cost)}

    return Cell((measure,), run, starts_its_own=True)


def _reopen(count: int) -> Cell:
    clean = Measure(f"reopen {count:,} partitions, clean stop", "s")
    killed = Measure(f"reopen {count:,} partitions, kill -9", "s")

    def run(target: Target, _scale: Scale) -> Figures:
        figures = {}
        with restart.own_broker(target) as broker:
            restart.start(broker)
            partitions = restart.Partitions(broker)
            partitions.grow(count)
            for measure, end in ((clean, broker.stop), (killed, broker.kill)):
                partitions.fill()
                end()
                opened = partitions.reopen()
                figures[measure.name] = Figure(opened.seconds, cost=opened.cost)
        return figures

    return Cell((clean, killed), run, starts_its_own=True)


def _growth(counts: tuple[int, ...]) -> Cell:
    """Goals are about ten thousand partitions, and then also about what each one more takes.

    With so many, which take Kafka minutes to make, the same broker is also killed and opened again.
    """
    is_large = max(counts) >= TEN_THOUSAND
    memories = {count: Measure(f"memory, {count:,} partitions", "MB") for count in counts}
    starts = {count: Measure(f"start, {count:,} partitions", "s") for count in counts}
    each = Measure("memory per partition", "KB")
    scrape = Measure(f"scrape of {max(counts):,} partitions", "s")
    killed = Measure(f"reopen {max(counts):,} partitions, kill -9", "s")

    def run(target: Target, _scale: Scale) -> Figures:
        figures = {}
        with restart.own_broker(target) as broker:
            restart.start(broker)
            many = restart.Partitions(broker)
            grown = list(growth.partitions(broker, many, counts))
            if is_large:
                broker.kill()
                opened = many.reopen()
                figures[killed.name] = Figure(opened.seconds, cost=opened.cost)
        for count, opened, memory_mb, _ in grown:
            figures[memories[count].name] = Figure(memory_mb, cost=opened.cost)
            figures[starts[count].name] = Figure(opened.seconds, cost=opened.cost)
        if is_large:
            figures[each.name] = Figure(growth.kilobytes_each(grown[0], grown[-1]))
        if grown[-1].scraped_s is not None:
            figures[scrape.name] = Figure(grown[-1].scraped_s, cost=grown[-1].opened.cost)
        return figures

    measures = (*memories.values(), *starts.values(), scrape, *((each, killed) if is_large else ()))
    return Cell(measures, run, True, is_quick=is_large, is_repeated=not is_large, is_own=is_large)


def _idle() -> Cell:
    measure = Measure("idle CPU", "%")  # of a core

    def run(target: Target, scale: Scale) -> Figures:
        if target.pid is None:
            return {}
        cost = idle.idle(target.address, target.pid, scale.idle_s)
        return {measure.name: Figure(cost.cpu_s / scale.idle_s * 100, cost=cost)}

    return Cell((measure,), run, is_own=True)


def _counting() -> Cell:
    """What the counters of one unbatched produce take, in this process."""
    measure = Measure("counting per unbatched request", "us")

    def run(target: Target, _scale: Scale) -> Figures:
        if not target.name.startswith("runnel"):
            return {}
        usage = Usage(os.getpid())
        microseconds = scraping.microseconds_of_counting()
        return {measure.name: Figure(microseconds, cost=usage.cost())}

    return Cell((measure,), run, is_own=True)


LIFE_CELLS: tuple[Cell, ...] = (
    _idle(),
    _counting(),
    _start(),
    _reopen(THOUSAND),
    _growth((10, 100)),
    _growth((THOUSAND, TEN_THOUSAND)),
)
