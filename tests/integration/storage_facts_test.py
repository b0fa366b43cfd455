"""What `storage` pipelines find in segment files equals what a consumer reads of the same log."""

import re
import time
from collections import Counter, defaultdict
from pathlib import Path

import psutil
import pytest

from runnel.inspect.analyzing import analyze_partition
from runnel.inspect.folders import look_into
from runnel.pipelines.streams.segment_facts import COUNTS, Segment, facts
from runnel.pipelines.streams.storage_report import Retention, look, shared_out
from runnel.storage.files import OsDisk
from tests.support.mixed_log import MixedWriter, wanted
from tests.support.process import BrokerProcess, StartBroker

DAY_MS = 86_400_000
PATIENCE_S = 60.0
QUIET_S = 1.0  # ten times the cleaner's own pause
SETTINGS = {
    "log.segment.bytes": str(1 << 20),
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
NO_RETENTION = Retention(-1, -1)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_facts_equal_a_consumers_count(start_broker: StartBroker, policy: str) -> None:
    """With every codec, and transactions that were committed, aborted and left open."""
    broker = start_broker(settings=SETTINGS | {"log.cleanup.policy": policy})
    writer = MixedWriter(broker.bootstrap, "mixed", seed=7, keyed=policy == "compact")
    writer.write(150)
    writer.leave_open()
    if policy == "compact":
        _wait_for_compaction(broker)
    rows = wanted(broker.bootstrap, "mixed").all
    broker.stop()
    topics = look([str(broker.data_dir)], re.compile("mixed"), NO_RETENTION, now_ms=0)
    assert list(topics) == ["mixed"]
    assert len(topics["mixed"].segments) > 1

    sums: defaultdict[int, Counter[str]] = defaultdict(Counter)
    keys: defaultdict[int, set[int]] = defaultdict(set)
    records: defaultdict[int, set[int]] = defaultdict(set)
    for batch in facts(topics["mixed"].segments):
        for row in batch.to_pylist():
            if row["what"] == "facts":
                sums[row["day"]].update({name: row[name] for name in COUNTS})
            else:
                (keys if row["what"] == "key" else records)[row["day"]].add(row["hash"])

    by_day: defaultdict[int, list[tuple[bytes | None, bytes | None]]] = defaultdict(list)
    for _, key, value, at_ms, _ in rows:
        by_day[at_ms // DAY_MS].append((key, value))
    assert {day: found["records"] for day, found in sums.items() if found["records"]} == {
        day: len(found) for day, found in by_day.items()
    }
    for day, found in by_day.items():
        assert sums[day]["message_bytes"] == sum(len(k or b"") + len(v or b"") for k, v in found)
        assert sums[day]["tombstones"] == sum(k is not None and v is None for k, v in found)
        assert sums[day]["keyed"] == sum(k is not None for k, _ in found)
        assert len(keys[day]) == len({k for k, _ in found if k is not None})
        assert len(records[day]) == len(set(found))

    disk = OsDisk(read_only=True)
    (files,) = (
        f for f in look_into(disk, str(broker.data_dir)).partitions if f.partition.topic == "mixed"
    )
    analysis = analyze_partition(disk, files)
    total = sum(sums.values(), Counter[str]())
    assert total["disk_bytes"] == analysis.bytes
    assert total["batches"] == analysis.batches
    assert total["control_records"] == analysis.control_records > 0
    bodies = sum(use.bytes for use in analysis.codecs.values())
    markers = bodies - total["body_bytes"]  # which are counted there, too
    assert 0 < markers < 100 * analysis.control_records
    payload = sum(use.payload_bytes for use in analysis.codecs.values())
    assert payload - total["payload_bytes"] == markers


def _wait_for_compaction(broker: BrokerProcess) -> None:
    """Until the cleaner found nothing to do several times over: it may clean in several passes."""
    deadline = time.monotonic() + PATIENCE_S
    passes, quiet_since = 0, time.monotonic()
    while passes == 0 or time.monotonic() - quiet_since < QUIET_S:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        seen = broker.log.count("cleaned mixed-0")
        if seen > passes or psutil.Process(broker.pid).children():
            passes, quiet_since = seen, time.monotonic()


def test_damage_is_counted_and_passed_over(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(settings={"log.retention.ms": "-1"})
    writer = MixedWriter(broker.bootstrap, "mixed", seed=1, keyed=True)
    writer.write(10)
    source = next((broker.data_dir / "mixed-0").glob("*.log"))
    data = bytearray(source.read_bytes())
    torn = tmp_path / "torn.log"
    torn.write_bytes(data[:-7])
    (found, *_) = _facts_of(torn)
    assert sum(batch["unreadable_bytes"] for batch in found) > 0
    data[90] ^= 0xFF  # in the first batch
    torn.write_bytes(data)
    (found, *_) = _facts_of(torn)
    assert sum(batch["unreadable_bytes"] for batch in found) >= 61
    assert sum(batch["records"] for batch in found) > 0
    assert list(facts([Segment(str(tmp_path / "gone.log"), "mixed", 10)])) == []


def _facts_of(path: Path) -> list[list[dict[str, int]]]:
    found = facts([Segment(str(path), "mixed", path.stat().st_size)])
    return [[row for batch in found for row in batch.to_pylist() if row["what"] == "facts"]]


def test_work_is_shared_out_by_bytes() -> None:
    segments = [Segment(f"{size}", "t", size) for size in (100, 10, 10, 10, 60, 40)]
    shares = shared_out(segments, 2)
    assert sorted(sum(each.size_bytes for each in share) for share in shares) == [110, 120]
    assert shared_out(segments[:1], 3).count([]) == 2
