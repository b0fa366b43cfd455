"""What a benchmark is made of: targets under load, cells that measure them, figures that come out.

A cell loads one target once and gives a figure for each of its measures. Cells know nothing of
goals or of other targets; `goals.py` compares, `report.py` prints, `run.py` takes turns.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from runnel.bench.usage import Cost
from runnel.client.raw import Address


class Broker(Protocol):
    """A broker of some kind on a data folder, which the benchmark may start and end.

    `spawn` starts the process and does not wait; the port is known before. `stop` is an orderly
    end, `kill` a crash; either may be followed by another `spawn` on the same folder and port.
    """

    @property
    def address(self) -> Address: ...
    @property
    def pid(self) -> int: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def log(self) -> str: ...
    def spawn(self) -> None: ...
    def stop(self) -> object: ...
    def kill(self) -> object: ...


class Target(NamedTuple):
    """A broker under load, and a way to make another of its kind on a folder of its own.

    `another` and `pid` are None for a broker that the benchmark did not start. All processes
    below `pid` count as the broker's. `data_dir` is where its logs lie, for cells that evict them
    from memory.
    """

    name: str
    address: Address
    pid: int | None = None
    another: Callable[[Path], Broker] | None = None
    data_dir: Path | None = None


class Scale(NamedTuple):
    """How much each cell does: a few seconds, and by bytes where memory is the limit."""

    seconds: float = 2.0
    client_messages: int = 100_000  # unbatched, by a real client
    megabytes: int = 1000
    samples: int = 5000  # of a latency; ten seconds where they are paced
    idle_s: float = 20.0
    commits: int = 1_000_000  # in a journal that is replayed
    groups: int = 100  # of ten members that stay
    compacted_megabytes: int = 10_000  # of one log


QUICK = Scale(1.5, 20_000, 500, 2000, 10.0, compacted_megabytes=1500)


class Figure(NamedTuple):
    """`cpu` is what the broker used per request in microseconds, or per GB in seconds."""

    value: float
    cpu: float | None = None
    generator_busy: float | None = None  # share of a core: near 1 the load was the bottleneck
    cost: Cost | None = None


class Measure(NamedTuple):
    """One line of the table. `unit` says which way is better: rates up, times and sizes down."""

    name: str
    unit: str


Figures = dict[str, Figure]  # by the name of the measure


class Cell(NamedTuple):
    """`run` may leave out what cannot be measured of a target: no process id, no data folder."""

    measures: tuple[Measure, ...]
    run: Callable[[Target, Scale], Figures]
    starts_its_own: bool = False  # uses `Target.another`, and leaves the running broker alone
    is_quick: bool = True  # one of the lines that `QUICK=1` measures
    is_repeated: bool = True  # else it takes long, and is run in the first round alone
    # Its goals are about Runnel by itself: the others are loaded once, by a quick run not at all.
    is_own: bool = False
    is_alone: bool = False  # the other brokers are stopped meanwhile; for a few seconds only
    is_tail: bool = False  # the slowest requests: taken again if the host took much meanwhile
