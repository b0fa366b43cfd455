"""Counting messages: beside a plain count of the same records, and past every kind of damage."""

import json
import random

import pytest

from runnel.inspect import analyzing
from runnel.inspect.analyzing import Analysis, AnalyzedSegment, analyze_partition
from runnel.inspect.folders import PartitionFiles, SegmentFiles, look_into
from runnel.inspect.freeing import Freed, freed_by
from runnel.inspect.kinds import NO_JSON, NONE, OTHERS, By, Kinds, parse_by
from runnel.inspect.sizes import Sizes, rounded
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from tests.simulated.disk import SimDisk

FOLDER = "data/topic-0"
CODECS = list(Compression)


def make_records(chance: random.Random, count: int) -> list[Record]:
    return [
        Record(
            key=chance.choice([None, b"", b"key %d" % chance.randrange(9)]),
            value=chance.choice(
                [None, b"no json", json.dumps({"type": chance.choice("abc"), "n": 1}).encode()]
            ),
            timestamp=chance.randrange(1_000, 9_000),
            headers=chance.choice([[], [("type", b"A")], [("x", b"1"), ("type", None)]]),
        )
        for _ in range(count)
    ]


def write(disk: SimDisk, batches: list[bytes]) -> PartitionFiles:
    disk.make_dir(FOLDER)
    file = disk.open(f"{FOLDER}/{0:020d}.log", create=True)
    file.write_at(0, b"".join(batches))
    return look_into(disk, FOLDER).partitions[0]


def build(seed: int) -> tuple[list[Record], list[bytes]]:
    chance = random.Random(seed)
    records: list[Record] = []
    batches: list[bytes] = []
    for _ in range(40):
        some = make_records(chance, chance.randrange(1, 30))
        codec = chance.choice(CODECS)
        batches.append(bytes(encode(some, codec=codec, base_offset=len(records))))
        records += some
    return records, batches


@pytest.mark.parametrize(("window", "at_once"), [(4 << 20, 200_000), (300, 7), (70, 1)])
def test_counts_are_those_of_the_records(
    window: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is read and decoded at once: a window smaller than a batch, a run within one."""
    monkeypatch.setattr(analyzing, "READ_BYTES", window)
    monkeypatch.setattr(analyzing, "RECORDS_AT_ONCE", at_once)
    records, batches = build(seed=5)
    kinds = Kinds(By("json", "type"))
    found = analyze_partition(disk := SimDisk(0), write(disk, batches), kinds)
    assert found.messages == len(records)
    assert found.batches == len(batches)
    assert found.bytes == sum(map(len, batches))
    assert found.with_key == sum(record.key is not None for record in records)
    assert found.null_values == sum(record.value is None for record in records)
    assert found.headers == sum(len(record.headers) for record in records)
    sizes = sorted(_size(record) for record in records)
    assert found.message_sizes.total_bytes == sum(sizes)
    assert found.message_sizes.percentiles(1.0) == [sizes[-1]]
    assert sum(use.messages for use in found.codecs.values()) == len(records)
    assert sum(use.batches for use in found.codecs.values()) == len(batches)
    assert found.first_timestamp == min(record.timestamp for record in records)
    assert found.segments[0].next_offset == len(records)
    assert found.segments[0].max_timestamp == max(record.timestamp for record in records)
    wanted: dict[str, int] = {}
    for record in records:
        label = NONE if record.value is None else NO_JSON
        if record.value and record.value.startswith(b"{"):
            label = json.loads(record.value)["type"]
        wanted[label] = wanted.get(label, 0) + 1
    assert kinds.messages == wanted
    assert found.unreadable_bytes == 0


def _size(record: Record) -> int:
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def test_kinds_by_header() -> None:
    records, batches = build(seed=6)
    kinds = Kinds(parse_by("header:type"))
    analyze_partition(disk := SimDisk(0), write(disk, batches), kinds)
    with_type = sum(("type", b"A") in record.headers for record in records)
    assert kinds.messages == {"A": with_type, NONE: len(records) - with_type}
    assert kinds.most(1)[0][:2] == (NONE, len(records) - with_type)


def test_damaged_batches_are_passed_over() -> None:
    records, batches = build(seed=7)
    damaged = bytearray(batches[3])
    damaged[-1] ^= 1
    disk = SimDisk(0)
    whole = analyze_partition(disk, write(disk, batches))
    disk = SimDisk(0)
    files = write(disk, [*batches[:3], bytes(damaged), *batches[4:], b"torn"])
    found = analyze_partition(disk, files)
    assert found.unreadable_batches == 1
    assert found.unreadable_bytes == len(damaged) + len(b"torn")
    assert found.batches == len(batches) - 1
    lost = int.from_bytes(batches[3][57:61], "big")
    assert found.messages == len(records) - lost == whole.messages - lost


def test_kinds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runnel.inspect.kinds.KINDS_MAX", 5)
    records = [Record(key=None, value=json.dumps({"n": n}).encode()) for n in range(20)]
    kinds = Kinds(parse_by("json:n"))
    analyze_partition(disk := SimDisk(0), write(disk, [bytes(encode(records))]), kinds)
    assert sum(kinds.messages.values()) == 20
    assert kinds.messages[OTHERS] == 15


@pytest.mark.parametrize("text", ["type", "header", "header:", "body:x", ":x"])
def test_what_kinds_cannot_be_told_by(text: str) -> None:
    with pytest.raises(ValueError, match="neither header:NAME nor json:FIELD"):
        parse_by(text)


def test_percentiles() -> None:
    sizes = Sizes()
    assert sizes.percentiles(0.5, 1.0) == [0, 0]
    sizes.add(range(1, 101))
    assert sizes.percentiles(0.5, 0.9, 0.99, 1.0) == [50, 90, 99, 100]
    assert sizes.by_powers_of_two()[-1] == (128, 37)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runnel.inspect.sizes.DISTINCT_MAX", 1_000)
    sizes = Sizes()
    for start in range(0, 100_000, 500):
        sizes.add(range(start, start + 500))
    assert sizes.count == 100_000
    assert len(sizes.counts) < 10_000
    assert sizes.percentiles(0.5)[0] == pytest.approx(50_000, rel=0.002)
    assert all(size <= rounded(size) <= size * 1.001 + 1 for size in range(1, 100_000, 37))


def test_what_a_retention_would_free() -> None:
    analysis = Analysis()
    for number in range(4):
        files = SegmentFiles(FOLDER, number * 10, {".log": 100}, 0, number == 3)
        timestamp = 1_000 * (number + 1)
        analysis.segments.append(AnalyzedSegment(files, 100, number * 10 + 10, timestamp))
    segments = analysis.segments

    def freed(retention_ms: int = -1, retention_bytes: int = -1) -> Freed:
        return freed_by(
            segments, retention_ms=retention_ms, retention_bytes=retention_bytes, now_ms=5_000
        )

    assert freed() == Freed(0, 0, 4, 400)
    assert freed(retention_ms=2_500) == Freed(2, 200, 4, 400)
    assert freed(retention_ms=0) == Freed(4, 400, 4, 400)
    assert freed(retention_bytes=250) == Freed(1, 100, 4, 400)
    assert freed(retention_bytes=0) == Freed(4, 400, 4, 400)
