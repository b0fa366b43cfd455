"""Ten million lines of logs: how fast they are indexed, and how long the slowest search takes.

Both are commands as a person types them, start of Python included. The index is built once for all
rounds; the connector has nothing like it.
"""

import json
import os
import random
import subprocess
import sys
import time

from bench.model import Measure
from bench.spark.model import RUNNEL, Cell, Stage
from runnel.bench.topics import make_topic
from runnel.client.raw import WireClient
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.batch import HEADER_SIZE, BatchHeader
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.process import environment

LINES, PARTITIONS, BATCH = 10_000_000, 4, 2000
DISTINCT_BATCHES = 100  # encoded once; the topic repeats them, each time in another order
TOPIC, INDEX = "bench-logs", "log-index"
INDEXING, SEARCH = "log search: lines indexed", "log search: slowest of 10 queries"
FIRST_MS = 1_790_000_000_000  # of a line in each partition, the next ones a millisecond apart
RARE = "a rare word: zyzzyva"
QUERIES = (
    ("zyzzyva",),
    ("payment failed",),
    ('"payment failed"', "--level", "error", "--service", "svc3"),
    ("payment -declined", "-C", "3"),
    ("", "--level", "error", "--field", "user=4711"),
    ("user=4711 timeout",),
    ("con*", "--service", "svc7"),
    ("nowhere",),
    ("timeout", "--since", f"@{FIRST_MS + 99_000}", "--until", f"@{FIRST_MS + 100_000}"),
    (r"declined /card \d*77 /", "--level", "error"),
)
_MESSAGES = (
    "payment {} accepted for order {}",
    "GET /api/v1/orders/{} 200 in {} ms",
    "payment failed for order {}: card {} declined",
    "cache miss for key {} on shard {}",
    "connection to db-{} took {} ms",
    "timeout after {} ms, retry {}",
)


def _lines(chance: random.Random) -> list[bytes]:
    found = []
    for _ in range(BATCH):
        message = chance.choice(_MESSAGES).format(chance.randrange(99_999), chance.randrange(999))
        document = {
            "ts": "2026-11-16T03:12:27.123Z",
            "level": chance.choices(["info", "warning", "error"], [17, 2, 1])[0],
            "service": f"svc{chance.randrange(12)}",
            "logger": f"app.part{chance.randrange(30)}",
            "message": message,
            "host": "web-1",
            "pid": 4711,
            "thread": "MainThread",
            "fields": {"request": f"{chance.getrandbits(64):016x}", "user": chance.randrange(9999)},
        }
        found.append(json.dumps(document).encode())
    return found


def _fill(stage: Stage) -> None:
    chance = random.Random(9)
    templates = [_lines(chance) for _ in range(DISTINCT_BATCHES)]
    encoded = [
        bytes(encode([Record(None, value, at) for at, value in enumerate(lines)]))
        for lines in templates
    ]
    last = bytes(
        encode([Record(None, json.dumps({"level": "error", "message": RARE}).encode(), 0)])
    )
    with WireClient(stage.broker.address) as client:
        topic = make_topic(client, TOPIC, PARTITIONS, {"retention.ms": "-1"})
        for number in range(LINES // BATCH // PARTITIONS):
            batches = chance.sample(encoded, PARTITIONS) + ([last] if number == 3 else [])
            for start in range(0, len(batches), PARTITIONS):
                here = [_at(FIRST_MS + number * BATCH, batch) for batch in batches[start:]]
                _send(client, topic.topic_id, here[:PARTITIONS])


def _at(start_ms: int, batch: bytes) -> bytes:
    header = BatchHeader.read(batch)
    last_ms = start_ms + header.record_count - 1
    changed = header.changed(base_timestamp=start_ms, max_timestamp=last_ms)
    return bytes(changed.write(batch[HEADER_SIZE:]))


def _send(client: WireClient, topic_id: bytes, batches: list[bytes]) -> None:
    rows = [PartitionProduceData(index=at, records=batch) for at, batch in enumerate(batches)]
    data = TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=rows)
    reply = client.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]))
    assert all(row.error_code == 0 for row in reply.responses[0].partition_responses), reply


def _command(stage: Stage, *arguments: str) -> tuple[float, str]:
    """Seconds and output."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "runnel", "logs", *arguments],
        env=environment(
            {
                "RUNNEL_BOOTSTRAP_SERVER": stage.broker.bootstrap,
                "RUNNEL_LOG_INDEX": str(stage.folder / INDEX),
            }
        ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - began, done.stdout


def _indexed(stage: Stage) -> float:
    """Lines per second, of the one time that they are indexed."""
    note = stage.folder / f"{INDEX}.seconds"
    if not note.exists():
        _fill(stage)
        seconds, told = _command(stage, "index", TOPIC, "--json")
        assert json.loads(told)["lines"] == LINES + 1, told
        note.write_text(str(seconds))
        sys.stderr.write(f"{TOPIC}: {told}")
        os.sync()
    return LINES / float(note.read_text())


def _indexing(stage: Stage, target: str) -> float | None:
    return _indexed(stage) if target == RUNNEL else None


def _search(stage: Stage, target: str) -> float | None:
    if target != RUNNEL:
        return None
    _indexed(stage)
    slowest = 0.0
    for query, *options in QUERIES:
        seconds, told = _command(stage, "search", TOPIC, query, "--json", *options)
        found = len(told.splitlines())
        sys.stderr.write(f"{query} {' '.join(options)}: {found} lines, {seconds:.2f} s\n")
        assert found == {"zyzzyva": 1, "nowhere": 0}.get(query, found)
        slowest = max(slowest, seconds)
    return slowest


LOG_CELLS: tuple[Cell, ...] = (
    Cell(Measure(INDEXING, "lines/s"), _indexing),
    Cell(Measure(SEARCH, "s"), _search),
)
