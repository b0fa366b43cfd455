"""What grows with partitions and with connections: memory, start-up, the rate of requests."""

import resource
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench import scraping
from bench.model import Broker
from bench.restart import Answered, Partitions
from runnel.bench.load import UNBATCHED, Result, produce
from runnel.bench.usage import Usage
from runnel.client.raw import Address

OTHER_FILES = 200  # of this process


class Grown(NamedTuple):
    """After a clean stop: how long the broker took to open all partitions, and its memory then."""

    partition_count: int
    opened: Answered
    memory_mb: float
    scraped_s: float | None = (
        None  # how long Prometheus waits; None for a broker without an exporter
    )


def partitions(broker: Broker, many: Partitions, counts: Sequence[int]) -> Iterator[Grown]:
    """One broker, more and more partitions; every one is written to before memory is read."""
    for count in counts:
        many.grow(count)
        many.fill()
        broker.stop()
        opened = many.reopen()
        many.fill()
        usage = Usage(broker.pid).cost()
        assert usage is not None
        yield Grown(count, opened, usage.rss_mb, scraping.seconds(broker, count))


def connections(address: Address, count: int, *, seconds: float, pid: int | None) -> Result:
    """Unbatched produce by so many connections with one request in flight each."""
    _allow_files(count + OTHER_FILES)
    load = UNBATCHED._replace(connections=count, in_flight=1, requests_per_send=1)
    return produce(address, load, seconds=seconds, pid=pid)


def _allow_files(count: int) -> None:
    """A shell's limit of open files is often 1024; what lies above it is ours to take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def kilobytes_each(few: Grown, many: Grown) -> float:
    """The resident memory of one partition more."""
    more = many.partition_count - few.partition_count
    return (many.memory_mb - few.memory_mb) * 1e3 / more
