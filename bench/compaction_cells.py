"""The cell of compaction: its own speed, and that a producer hardly notices it."""

from bench import compaction
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench.usage import Usage

SPEED = Measure("compaction of one log", "MB/s")
BEFORE = Measure("produce p99 before a log is compacted", "us")
MEANWHILE = Measure("produce p99 while a log is compacted", "us")


def _run(target: Target, scale: Scale) -> Figures:
    if target.data_dir is None:
        return {}
    usage = Usage(target.pid)
    found = compaction.compact(
        target.address, target.data_dir, samples=scale.samples, megabytes=scale.compacted_megabytes
    )
    cost = usage.cost()
    return {
        SPEED.name: Figure(found.megabytes_per_second, cost=cost),
        BEFORE.name: Figure(found.before.p99, cost=cost),
        MEANWHILE.name: Figure(found.meanwhile.p99, cost=cost),
    }


# Ten gigabytes take minutes to write.
COMPACTION_CELLS: tuple[Cell, ...] = (
    Cell((SPEED, BEFORE, MEANWHILE), _run, is_repeated=False, is_own=True),
)
