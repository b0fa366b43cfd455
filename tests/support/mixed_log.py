"""A log with everything in it: codecs, headers, nulls, transactions that end either way or do not.

What to expect of it is asked of librdkafka's consumer, which is other people's code.
"""

import random
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer, TopicPartition

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PATIENCE_S = 30.0
KEYS = 40

Row = tuple[int, bytes | None, bytes | None, int, list[tuple[str, bytes | None]] | None]


class Wanted(NamedTuple):
    """By isolation level: rows, and the offset that ends them."""

    all: list[Row]
    end: int
    committed: list[Row]
    last_stable: int


class MixedWriter:
    """`write` as often as need be, then `leave_open`. The same seed makes the same choices."""

    def __init__(self, bootstrap: str, topic: str, seed: int, *, keyed: bool) -> None:
        self._topic = topic
        self._rng = random.Random(seed)
        self._keyed = keyed
        common = {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 2}
        self._plain = [Producer(common | {"compression.type": codec}) for codec in CODECS]
        self._transactional = [
            Producer(common | {"compression.type": codec, "transactional.id": f"{topic}-{slot}"})
            for slot, codec in enumerate(CODECS[:3])
        ]
        for producer in self._transactional:
            producer.init_transactions(PATIENCE_S)
        self._open: set[int] = set()

    def write(self, bursts: int) -> None:
        """Transactions overlap one another, and end in any order."""
        rng = self._rng
        for _ in range(bursts):
            slot = rng.randrange(len(self._transactional) + 2)
            if slot >= len(self._transactional):
                self._burst(rng.choice(self._plain))
                continue
            producer = self._transactional[slot]
            if slot not in self._open:
                producer.begin_transaction()
                self._open.add(slot)
            self._burst(producer)
            if rng.random() < 0.5:
                self._end(slot)

    def leave_open(self) -> None:
        """All transactions end but one, in which there is a record, and records follow it."""
        for slot in sorted(self._open):
            self._end(slot)
        self._transactional[0].begin_transaction()
        self._burst(self._transactional[0])
        self._burst(self._plain[0])

    def _end(self, slot: int) -> None:
        producer = self._transactional[slot]
        if self._rng.random() < 0.5:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
        self._open.discard(slot)

    def _burst(self, producer: Producer) -> None:
        rng = self._rng
        for _ in range(rng.choice((1, 3, 40))):
            key = b"key %d" % rng.randrange(KEYS)
            value = rng.randbytes(rng.choice((0, 10, 1500)))
            headers: list[tuple[str, str | bytes | None]] = [
                ("a", b"1"), ("b", None), ("ä", value[:5]),
            ]  # fmt: skip
            producer.produce(
                self._topic,
                None if rng.random() < 0.1 else value,
                None if not self._keyed and rng.random() < 0.2 else key,
                0,
                headers=headers[: rng.randrange(4)],
                timestamp=1_700_000_000_000 + rng.randrange(100_000_000),
            )
        assert producer.flush(PATIENCE_S) == 0


def wanted(bootstrap: str, topic: str) -> Wanted:
    rows, end = _read(bootstrap, topic, "read_uncommitted")
    committed, last_stable = _read(bootstrap, topic, "read_committed")
    return Wanted(rows, end, committed, last_stable)


def _read(bootstrap: str, topic: str, isolation: str) -> tuple[list[Row], int]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        consumer.assign([TopicPartition(topic, 0, low)])
        rows: list[Row] = []
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the end of the partition is told"
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                return rows, high
            rows.append(_row(message))
    finally:
        consumer.close()


def _row(message: Message) -> Row:
    offset, pairs = message.offset(), message.headers()
    assert offset is not None and not isinstance(pairs, dict)
    headers = None
    if pairs:
        headers = [(str(key), None if value is None else bytes(value)) for key, value in pairs]  # type: ignore[arg-type]  # librdkafka gives bytes
    return offset, message.key(), message.value(), message.timestamp()[1], headers
