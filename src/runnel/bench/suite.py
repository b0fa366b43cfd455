"""What `runnel bench` measures of a broker that already runs.

A part of the benchmark that needs nothing but the wire: pre-encoded load, and latencies at rest.
Every measure makes a topic of its own, named `bench-...`, and deletes it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from runnel.bench import load
from runnel.bench.latency import Latency, end_to_end, sync_produce
from runnel.bench.load import LARGE, UNBATCHED, Load, Result
from runnel.bench.pipeline import LoadError
from runnel.client.raw import Address, WireClient
from runnel.wire.messages.metadata import MetadataRequest

METADATA_VERSION = 12  # the first that can ask for no topic by id


class Size(NamedTuple):
    """How long a measure takes."""

    seconds: float
    megabytes: int
    samples: int


class Line(NamedTuple):
    """One figure. `busy` is the share of a core that the load itself needed."""

    measure: str
    unit: str
    value: float
    busy: float | None = None


Measure = Callable[[Address, Size], Iterator[Line]]


def _produce(name: str, wanted: Load) -> Measure:
    def run(address: Address, size: Size) -> Iterator[Line]:
        result = load.produce(address, wanted, megabytes=size.megabytes)
        yield Line(name, "MB/s", result.megabytes_per_second, result.busy)

    return run


def _unbatched(name: str, wanted: Load) -> Measure:
    def run(address: Address, size: Size) -> Iterator[Line]:
        result = load.produce(address, wanted, seconds=size.seconds)
        yield Line(name, "requests/s", result.requests_per_second, result.busy)

    return run


def _fetch(address: Address, size: Size) -> Iterator[Line]:
    result: Result = load.fetch(
        address, consumers=1, megabytes=size.megabytes, seconds=size.seconds
    )
    yield Line("fetch, 1 consumer", "MB/s", result.megabytes_per_second, result.busy)


def _sync_produce(address: Address, size: Size) -> Iterator[Line]:
    yield from _latency("sync produce", sync_produce(address, samples=size.samples))


def _end_to_end(address: Address, size: Size) -> Iterator[Line]:
    yield from _latency("end to end", end_to_end(address, samples=size.samples))


def _latency(name: str, found: Latency) -> Iterator[Line]:
    for part, value in zip(("p50", "p99", "p99.9"), found, strict=True):
        yield Line(f"{name} {part}", "us", value)


MEASURES: tuple[Measure, ...] = (
    _produce("produce 1 KiB, 1 connection", LARGE),
    _produce("produce 1 KiB, 4 connections", LARGE._replace(connections=4)),
    _unbatched("unbatched produce, 1 connection", UNBATCHED),
    _unbatched("unbatched produce, 16 connections", UNBATCHED._replace(connections=16)),
    _fetch,
    _sync_produce,
    _end_to_end,
)


def measure(address: Address, size: Size) -> Iterator[Line]:
    """One line after the other, as they are found. Raises LoadError, ClosedError and OSError."""
    _ensure_alone(address)
    for run in MEASURES:
        yield from run(address, size)


def _ensure_alone(address: Address) -> None:
    """The load speaks to one broker, so that one must lead every partition."""
    with WireClient(address) as client:
        brokers = client.call(MetadataRequest(topics=[]), version=METADATA_VERSION).brokers
    if len(brokers) != 1:
        raise LoadError(f"the load is for one broker; this cluster has {len(brokers)}")
