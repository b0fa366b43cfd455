"""The named cells of the benchmark, in the order in which a round runs them.

A cell loads one target once and returns a figure for each of its measures, fewer where the target
does not allow one. Loads that make data delete their topics, so that every round starts on the
same memory.
"""

from bench.compaction_cells import COMPACTION_CELLS
from bench.group_cells import GROUP_CELLS
from bench.latency_cells import LATENCY_CELLS
from bench.library_cells import LIBRARY_CELLS
from bench.life_cells import LIFE_CELLS
from bench.load_cells import LOAD_CELLS
from bench.model import Cell
from bench.perf_cells import PERF_CELLS

CELLS: tuple[Cell, ...] = (
    LOAD_CELLS
    + PERF_CELLS
    + LATENCY_CELLS
    + GROUP_CELLS
    + COMPACTION_CELLS
    + LIBRARY_CELLS
    + LIFE_CELLS
)
