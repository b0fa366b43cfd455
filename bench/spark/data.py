"""The topics that are read: batches encoded once and sent many times, spread over a day of time.

Every batch gets timestamps of its own, rising with its offsets, as a topic of a day has them; all
else in it is the same, which no reader can see.

An hour of a day is a 24th of the records: of 6 million it takes both readers as long as Spark takes
to start a job, whoever reads. So that one is of a full size in a quick run, too.
"""

import json
import random
import sys
from collections.abc import Callable, Collection, Iterator, Sequence

from bench.spark.model import Scale, Topic
from runnel.bench.frames import values
from runnel.bench.topics import make_topic
from runnel.client.raw import Address, WireClient
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.batch import BatchHeader
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = 4
FIRST_MS = 1_790_000_000_000
DAY_MS = 24 * 3_600_000
HEADER_BYTES = 61
SMALL, LARGE, JSON, TABLE = "100 B", "1 KiB", "JSON", "for a table"
DAY = "a day of 100 B"
COUNTED, TIMES = "10 M of 100 B", "10 GB of 1 KiB"
WARM, WARM_JSON = "warm-up", "warm-up of JSON"
JSON_SCHEMA = "id BIGINT, name STRING, amount DOUBLE, active BOOLEAN, city STRING, count INT"
WARM_RECORDS = 600_000


def wanted_records(scale: Scale) -> dict[str, int]:
    return {
        SMALL: scale.small_records,
        DAY: scale.day_records,
        LARGE: scale.large_records,
        JSON: scale.json_records,
        TABLE: scale.table_records,
        COUNTED: scale.counted_records,
        TIMES: scale.times_records,
        WARM: WARM_RECORDS,
        WARM_JSON: WARM_RECORDS,
    }


def alike(scale: Scale, what: str, there: Collection[str]) -> str | None:
    """A topic that is there already and holds just what this one would."""
    return (
        SMALL
        if what == DAY and SMALL in there and scale.day_records == scale.small_records
        else None
    )


def fill(address: Address, what: str, count: int) -> Topic:
    """About so many records in a new topic, the same in each partition."""
    batch_records, make = _KINDS[what]
    per_partition = max(1, round(count / PARTITIONS / batch_records))
    template = _Template(make(batch_records))
    name = f"bench-{what.replace(' ', '-')}"
    with WireClient(address) as client:
        topic = make_topic(client, name, PARTITIONS, {"retention.ms": "-1"})
        for number in range(per_partition):
            start_ms = FIRST_MS + DAY_MS * number // per_partition
            batch = template.at(start_ms, DAY_MS // per_partition)
            data = TopicProduceData(
                name=name,
                topic_id=topic.topic_id,
                partition_data=[
                    PartitionProduceData(index=at, records=batch) for at in range(PARTITIONS)
                ],
            )
            reply = client.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]))
            rows = reply.responses[0].partition_responses
            assert all(row.error_code == 0 for row in rows), rows
    records = per_partition * batch_records * PARTITIONS
    sys.stderr.write(f"{name}: {records:,} records\n")
    return Topic(name, records, FIRST_MS, DAY_MS)


class _Template:
    """A batch whose records are spread evenly over its share of the day."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self._payloads = payloads
        self._step_ms = -1
        self._header: BatchHeader | None = None
        self._body = b""

    def at(self, start_ms: int, span_ms: int) -> bytes:
        step_ms = span_ms // len(self._payloads)
        if self._header is None or step_ms != self._step_ms:
            records = [
                Record(f"key-{at:06d}".encode(), value, at * step_ms)
                for at, value in enumerate(self._payloads)
            ]
            batch = bytes(encode(records))
            self._header, self._body = BatchHeader.read(batch), batch[HEADER_BYTES:]
            self._step_ms = step_ms
        last_ms = start_ms + step_ms * (len(self._payloads) - 1)
        header = self._header.changed(base_timestamp=start_ms, max_timestamp=last_ms)
        return bytes(header.write(self._body))


def _text(record_bytes: int) -> Callable[[int], list[bytes]]:
    return lambda count: list(values(record_bytes, count))


def _json(count: int) -> list[bytes]:
    return [json.dumps(row).encode() for row in _objects(count)]


def _objects(count: int) -> Iterator[dict[str, object]]:
    chance = random.Random(8)
    cities = ["Ghent", "Porto", "Lund", "Kraków", "Graz", "Turku"]
    for number in range(count):
        yield {
            "id": chance.getrandbits(40),
            "name": f"customer {number % 977}",
            "amount": round(chance.random() * 1e4, 2),
            "active": chance.random() < 0.5,
            "city": chance.choice(cities),
            "count": chance.randrange(1000),
        }


# Records in a batch, so that it is just under the default limit of one; and their values.
_KINDS: dict[str, tuple[int, Callable[[int], list[bytes]]]] = {
    SMALL: (7500, _text(100)),
    DAY: (7500, _text(100)),
    LARGE: (900, _text(1024)),
    JSON: (6000, _json),
    TABLE: (7500, _text(100)),
    COUNTED: (7500, _text(100)),
    TIMES: (900, _text(1024)),
    WARM: (7500, _text(100)),
    WARM_JSON: (6000, _json),
}
