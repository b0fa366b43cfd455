"""A broker at half load, while something else is measured.

Another process produces unbatched records at half the rate that the same broker took at full
speed just before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.beside import Link, beside
from runnel.bench.frames import produce_reply_shape
from runnel.bench.load import UNBATCHED, produce, produce_chunks, spread
from runnel.bench.pipeline import EqualReplies, Pipeline, drive, paced
from runnel.bench.topics import passing_topic
from runnel.client.raw import Address, WireClient

LOADED = UNBATCHED._replace(connections=4)
PACED_PER_SEND = 4
TICK_S = 0.001


@contextmanager
def half_load(address: Address, seconds: float) -> Iterator[None]:
    """Find the full rate for so long; then half of it, until the end of the block."""
    full = produce(address, LOADED, seconds=seconds)
    with beside(produce_paced, address, full.requests_per_second / 2) as load:
        yield
        load.result()


def produce_paced(link: Link, address: Address, requests_per_second: float) -> int:
    """Runs in a process of its own; returns how many requests were answered."""
    batch = LOADED.batch()
    with (
        WireClient(address) as client,
        passing_topic(client, "half-load", LOADED.partitions) as topic,
    ):
        chunks = produce_chunks(client, topic, LOADED, batch, per_send=PACED_PER_SEND)
        shape = produce_reply_shape(client, topic)
        share = requests_per_second / LOADED.connections
        pipelines = []
        for number in range(LOADED.connections):
            mine = paced(spread(chunks, number, LOADED.connections), share, link.is_over)
            pipelines.append(Pipeline(address, mine, EqualReplies(shape), LOADED.in_flight))
        link.say_ready()
        drive(pipelines, TICK_S)
    return sum(pipeline.done_count for pipeline in pipelines)
