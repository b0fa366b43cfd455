"""What is asked of the broker while its instructions are counted, as bytes made beforehand.

Versions are those of the newest clients and stay as they are: a new one would be another script.
"""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from bench.members import Member
from bench.ratchet.guests import (
    CONSUMER_HEARTBEAT_VERSION,
    FETCH_VERSION,
    HEARTBEAT_VERSION,
    Committing,
    IdleConsumer,
    NewGuest,
    classic,
    committing,
    consumer,
)
from runnel.client.raw import Topic, decode_reply, encode_frame
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.apis import ApiKey
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION = 13
WARM_UP_COUNT = 20  # the interpreter has specialized its code by then
TIMESTAMP_MS = 1_700_000_000_000
LONG_MS = 600_000
PRODUCER_ID = 4000
LARGE_RECORD_COUNT = 1000
LARGE_ROUND_COUNT = 40  # of produce and of fetch: one batch each
MANY_PARTITIONS = 50
IDLE_PARTITIONS = 10


class Round(NamedTuple):
    """One request; with `parked`, a fetch that waits until that request wakes it."""

    request: bytes
    parked: bytes | None = None


class Part(NamedTuple):
    """A counted stretch: `rounds` makes as many as it is told, for its topic.

    If the broker has to know who asks, for that guest, when it has settled.
    """

    name: str
    topic: str
    round_count: int
    rounds: Callable[[Any, int], Sequence[Round]]
    guest: NewGuest | None = None


def _unbatched(topic: Topic, count: int) -> Sequence[Round]:
    return [Round(_produce(topic, [_batch(100, 1)]))] * count


def _idempotent(topic: Topic, count: int) -> Sequence[Round]:
    return [
        Round(_produce(topic, [_batch(100, 1, sequence)], acks=-1)) for sequence in range(count)
    ]


def _large(topic: Topic, count: int) -> Sequence[Round]:
    return [Round(_produce(topic, [_batch(1024, LARGE_RECORD_COUNT)]))] * count


def _many(topic: Topic, count: int) -> Sequence[Round]:
    return [Round(_produce(topic, [_batch(100, 1)] * MANY_PARTITIONS))] * count


def _fetch_large(topic: Topic, count: int) -> Sequence[Round]:
    """One batch after the other of those that `_large` has produced."""
    size_bytes = len(_batch(1024, LARGE_RECORD_COUNT))
    return [Round(_fetch(topic, index * LARGE_RECORD_COUNT, size_bytes)) for index in range(count)]


def _parked(topic: Topic, count: int) -> Sequence[Round]:
    request = _produce(topic, [_batch(100, 1)])
    return [Round(request, _fetch(topic, offset, 1 << 20)) for offset in range(count)]


def _heartbeats(member: Member, count: int) -> Sequence[Round]:
    return [Round(encode_frame(member.request(), HEARTBEAT_VERSION))] * count


def _consumer_heartbeats(member: Member, count: int) -> Sequence[Round]:
    return [Round(encode_frame(member.request(), CONSUMER_HEARTBEAT_VERSION))] * count


def _commits(member: Committing, count: int) -> Sequence[Round]:
    return [Round(member.commit())] * count


def _idle(waiting: IdleConsumer, count: int) -> Sequence[Round]:
    return [Round(frame) for frame in waiting.idle(count)]


PARTS = (
    Part("produce, one record of 100 B", "small", 200, _unbatched),
    Part("produce, one record of 100 B, idempotent, acks=all", "idempotent", 200, _idempotent),
    Part("produce, 1000 records of 1 KiB", "large", LARGE_ROUND_COUNT, _large),
    Part("produce, 50 partitions with one record each", "many", 25, _many),
    Part("fetch, 1000 records of 1 KiB", "large", LARGE_ROUND_COUNT, _fetch_large),
    Part("fetch, parked until a produce wakes it (with that)", "parked", 200, _parked),
    Part("heartbeat, classic", "small", 200, _heartbeats, classic),
    Part("heartbeat, consumer group", "small", 200, _consumer_heartbeats, consumer),
    Part("offset commit, one partition", "small", 200, _commits, committing),
    Part("fetch, ten quiet partitions until it times out", "idle", 100, _idle, IdleConsumer),
)
PARTITION_COUNTS = {
    "small": 1,
    "idempotent": 1,
    "large": 1,
    "many": MANY_PARTITIONS,
    "parked": 1,
    "idle": IDLE_PARTITIONS,
}


@cache
def _batch(record_bytes: int, record_count: int, sequence: int = -1) -> bytes:
    value = bytes(range(256)) * (1 + record_bytes // 256)
    record = Record(None, value[:record_bytes], TIMESTAMP_MS)
    if sequence < 0:
        return bytes(encode([record] * record_count))
    return bytes(
        encode([record], producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence)
    )


def _produce(topic: Topic, batches: list[bytes], *, acks: int = 1) -> bytes:
    """One batch for each partition, from the first on."""
    partitions = [
        PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)
    ]
    data = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=partitions)
    request = ProduceRequest(acks=acks, timeout_ms=LONG_MS, topic_data=[data])
    return encode_frame(request, PRODUCE_VERSION)


def _fetch(topic: Topic, offset: int, max_bytes: int) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=LONG_MS,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[partition])],
    )
    return encode_frame(request, FETCH_VERSION)


def ensure_good(frame: bytes, reply: bytes) -> None:
    """A broker that refuses is quick: its instructions are not to be counted."""
    key, version = struct.unpack_from(">hh", frame, 4)
    _, response = decode_reply(key, version, reply)
    assert getattr(response, "error_code", 0) == 0, response
    if key == ApiKey.PRODUCE:
        rows = [row for topic in response.responses for row in topic.partition_responses]
    elif key == ApiKey.FETCH:
        rows = [row for topic in response.responses for row in topic.partitions]
        assert all(row.records for row in rows), "a fetch without records"
        assert rows or response.session_id, "only who has a session may be told nothing"
    elif key == ApiKey.OFFSET_COMMIT:
        rows = [row for topic in response.topics for row in topic.partitions]
    else:
        return
    for row in rows:
        assert row.error_code == 0, row
