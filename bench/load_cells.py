"""Cells of throughput: pre-encoded producers, librdkafka, consumers, both at once, connections.

The quick cells are those that the goals name; the others vary one or two things of them.
"""

from bench import clients, cold, growth, mixed
from bench.clients import LARGE_RECORDS, SMALL_RECORDS, UNBATCHED_RECORDS, ClientLoad
from bench.figures import megabytes_cell, megabytes_figure, requests_cell, requests_figure
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench import load
from runnel.bench.load import FIFTY_PARTITIONS, LARGE, SMALL, UNBATCHED, Load, Result
from runnel.native.compression import Compression

ALL = -1
LZ4 = Compression.LZ4
ON_DISK = (("flush.messages", "1"),)  # which Runnel calls durability `ack`
CONNECTION_COUNTS = (10, 100, 1000, 5000)


def _produce(name: str, what: Load, *, is_quick: bool = False) -> Cell:
    return megabytes_cell(
        name,
        lambda target, scale: load.produce(
            target.address, what, megabytes=scale.megabytes, pid=target.pid
        ),
        is_quick=is_quick,
    )


def _requests(name: str, what: Load, *, is_quick: bool = True) -> Cell:
    return requests_cell(
        name,
        lambda target, scale: load.produce(
            target.address, what, seconds=scale.seconds, pid=target.pid
        ),
        is_quick=is_quick,
    )


def _client_produce(name: str, what: ClientLoad, part: int = 1) -> Cell:
    """`part`: of how many parts of the bytes one is sent, where the client takes long."""
    return megabytes_cell(
        name,
        lambda target, scale: clients.produce(
            target.address,
            what,
            messages=scale.megabytes * 1_000_000 // what.record_bytes // part,
            pid=target.pid,
        ),
    )


def _fetch_warm(name: str, consumers: int, *, is_buffer_fixed: bool = True) -> Cell:
    receive_buffer_bytes = load.CONSUMER_BUFFER_BYTES if is_buffer_fixed else None
    return megabytes_cell(
        name,
        lambda target, scale: load.fetch(
            target.address,
            consumers=consumers,
            megabytes=scale.megabytes,
            seconds=scale.seconds,
            pid=target.pid,
            receive_buffer_bytes=receive_buffer_bytes,
        ),
        is_quick=is_buffer_fixed,
    )


def _fetch_cold(name: str, consumers: int) -> Cell:
    def run(target: Target, scale: Scale) -> Result | None:
        if target.data_dir is None:
            return None
        return cold.fetch(
            target.address,
            target.data_dir,
            consumers=consumers,
            megabytes=scale.megabytes,
            pid=target.pid,
        )

    return megabytes_cell(name, run, is_quick=False)


def _both() -> Cell:
    names = "both at once: produce", "both at once: fetch"

    def run(target: Target, scale: Scale) -> Figures:
        results = mixed.both(
            target.address, megabytes=scale.megabytes, seconds=scale.seconds, pid=target.pid
        )
        return dict(zip(names, map(megabytes_figure, results), strict=True))

    return Cell(tuple(Measure(name, "MB/s") for name in names), run, is_quick=False)


def _connections(count: int) -> Cell:
    rate = Measure(f"unbatched produce, {count:,} connections, 1 in flight each", "requests/s")
    memory = Measure(f"memory, {count:,} connections", "MB")

    def run(target: Target, scale: Scale) -> Figures:
        result = growth.connections(target.address, count, seconds=scale.seconds, pid=target.pid)
        figures = {rate.name: requests_figure(result)}
        if result.cost is not None:
            figures[memory.name] = Figure(result.cost.rss_mb, cost=result.cost)
        return figures

    return Cell((rate, memory), run, is_quick=False)


def _client_unbatched() -> Cell:
    return requests_cell(
        "unbatched produce, librdkafka",
        lambda target, scale: clients.produce(
            target.address, UNBATCHED_RECORDS, messages=scale.client_messages, pid=target.pid
        ),
        is_quick=False,
    )


LOAD_CELLS: tuple[Cell, ...] = (
    _client_produce("produce 1 KiB, librdkafka, acks=1", LARGE_RECORDS),
    _client_produce("produce 1 KiB, librdkafka, acks=all", LARGE_RECORDS._replace(acks="all")),
    _client_produce("produce 100 B, librdkafka, none", SMALL_RECORDS, part=3),
    _client_produce("produce 100 B, librdkafka, lz4", SMALL_RECORDS._replace(codec="lz4"), part=3),
    _produce("produce 1 KiB, 1 connection", LARGE, is_quick=True),
    _produce("produce 1 KiB, 4 connections", LARGE._replace(connections=4), is_quick=True),
    _produce("produce 1 KiB, 16 connections", LARGE._replace(connections=16)),
    _produce("produce 1 KiB, 1 connection, acks=all", LARGE._replace(acks=ALL)),
    _produce(
        "produce 1 KiB, 16 connections, 64 partitions, acks=all",
        LARGE._replace(connections=16, partitions=64, acks=ALL),
    ),
    _produce("produce 1 KiB, 1 connection, lz4", LARGE._replace(codec=LZ4)),
    _produce("produce 100 B, 1 connection", SMALL),
    _produce("produce 100 B, 1 connection, lz4", SMALL._replace(codec=LZ4)),
    _produce("produce 100 B, 16 connections", SMALL._replace(connections=16)),
    _produce(
        "produce 100 B, 16 connections, 64 partitions, lz4, acks=all",
        SMALL._replace(connections=16, partitions=64, codec=LZ4, acks=ALL),
    ),
    _requests("unbatched produce, 1 connection", UNBATCHED),
    _requests(
        "unbatched produce, 4 connections", UNBATCHED._replace(connections=4), is_quick=False
    ),
    _requests("unbatched produce, 16 connections", UNBATCHED._replace(connections=16)),
    _client_unbatched(),
    _requests("50 small partitions per request", FIFTY_PARTITIONS),
    _fetch_warm("fetch, 1 consumer, warm", 1),
    _fetch_warm("fetch, 16 consumers, warm", 16),
    _fetch_warm("fetch, 1 consumer, warm, buffer left to the kernel", 1, is_buffer_fixed=False),
    _fetch_warm("fetch, 16 consumers, warm, buffer left to the kernel", 16, is_buffer_fixed=False),
    _fetch_cold("fetch, 1 consumer, cold", 1),
    _fetch_cold("fetch, 16 consumers, cold", 16),
    _both(),
    *(_connections(count) for count in CONNECTION_COUNTS),
    _requests(
        "unbatched produce, 16 connections, every ack on disk",
        UNBATCHED._replace(connections=16, configs=ON_DISK),
        is_quick=False,
    ),
)
