"""Cells of the client library: its messages per second, and those of what it stands on."""

from collections.abc import Callable

from bench import library
from bench.library import Rates
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench.load import LARGE_RECORD_BYTES, SMALL_RECORD_BYTES
from runnel.bench.usage import Usage
from runnel.client.raw import Address

LIBRARY, PLAIN = "client library", "confluent-kafka by itself"
SIZES = {"100 B": SMALL_RECORD_BYTES, "1 KiB": LARGE_RECORD_BYTES}
WORKS: dict[str, Callable[[Address, int, int], Rates]] = {
    "produce": library.producing,
    "consume": library.consuming,
}


def _cell(work: str, size: str) -> Cell:
    names = f"{LIBRARY}, {work} {size}", f"{PLAIN}, {work} {size}"

    def run(target: Target, scale: Scale) -> Figures:
        usage = Usage(target.pid)
        rates = WORKS[work](target.address, SIZES[size], scale.client_messages)
        cost = usage.cost()
        return {name: Figure(rate, cost=cost) for name, rate in zip(names, rates, strict=True)}

    # Both take turns nine times within the cell, so one round of it is enough.
    measures = tuple(Measure(name, "messages/s") for name in names)
    return Cell(measures, run, is_repeated=False, is_own=True)


LIBRARY_CELLS: tuple[Cell, ...] = tuple(_cell(work, size) for work in WORKS for size in SIZES)
