"""A folder is verified: what is whole gives no finding, what is damaged always does.

The oracle for the damage is the test itself: it flips every bit of a log that a CRC covers, every
bit of the indexes, and cuts the log at every byte.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from runnel.config.topic import LogConfig
from runnel.inspect.folders import look_into
from runnel.inspect.verifying import Checked, Finding, Verifier
from runnel.storage.checkpoints import RECOVERY_POINTS, encode_offsets, replace_file
from runnel.types import TopicPartition
from runnel.wire.batch import BatchHeader
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch, make_marker
from tests.support.stores import FOLDER, ManualClock, open_log

CONFIG = LogConfig(index_interval_bytes=1)
LOG_FOLDER = f"{FOLDER}/topic-0"
FIRST = f"{LOG_FOLDER}/{0:020d}"
SECOND = f"{LOG_FOLDER}/{9:020d}"


def _batches() -> list[tuple[BatchHeader, bytes]]:
    return [
        make_batch(0, 2, value=b"first" * 5, producer_id=9, producer_epoch=0, sequence=0),
        make_batch(2, 1, timestamp=2_000, epoch=1, value=b"x" * 40),
        make_batch(3, 3, producer_id=5, producer_epoch=1, sequence=0, transactional=True, epoch=1),
        make_batch(6, 2, timestamp=3_000, epoch=2, producer_id=9, producer_epoch=0, sequence=2),
        make_marker(8, commit=False, producer_id=5, producer_epoch=1, epoch=2),
    ]


@pytest.fixture
def disk() -> SimDisk:
    """Two segments, closed in order."""
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    for header, raw in _batches():
        log.append(header, raw, 0)
    log.roll(0, 9)
    header, raw = make_batch(9, 1, timestamp=4_000, epoch=2)
    log.append(header, raw, 0)
    store.close_clean(1, {})
    return disk


def verify(
    disk: SimDisk, *, deep: bool = False, pause: Callable[[], None] = lambda: None
) -> tuple[list[Finding], Checked]:
    findings: list[Finding] = []
    found = look_into(disk, FOLDER)
    checked = Verifier(disk, findings.append, deep=deep, pause=pause).verify(
        found, found.partitions
    )
    assert checked.findings == len(findings)
    return findings, checked


def replace(disk: SimDisk, path: str, data: bytes) -> None:
    file = disk.open(path)
    file.truncate(0)
    file.write_at(0, data)


@pytest.mark.parametrize("deep", [False, True])
def test_a_whole_folder_has_no_findings(disk: SimDisk, deep: bool) -> None:
    findings, checked = verify(disk, deep=deep)
    assert findings == []
    assert (checked.partitions, checked.segments, checked.batches) == (1, 2, 6)
    assert checked.records == 10 and checked.missing_offsets == 0
    assert checked.bytes == disk.size(f"{FIRST}.log") + disk.size(f"{SECOND}.log")


def test_every_flipped_bit_that_a_crc_covers_is_found(disk: SimDisk) -> None:
    content = disk.read_whole(f"{FIRST}.log")
    starts = [0]
    for _, raw in _batches():
        starts.append(starts[-1] + len(raw))
    counts: Counter[str] = Counter()
    for start, end in pairwise(starts):
        for bit in range(16 * 8, (end - start) * 8):  # from the magic on
            damaged = bytearray(content)
            damaged[start + bit // 8] ^= 0x80 >> (bit % 8)
            replace(disk, f"{FIRST}.log", bytes(damaged))
            findings, _ = verify(disk)
            assert findings and findings[0].position == start, (start, bit, findings)
            counts["found"] += 1
    print(f"\nflipped bits from magic to the end of five batches: {dict(counts)}")
    assert counts["found"] == (len(content) - 5 * 16) * 8


def test_every_flipped_bit_of_a_length_is_found(disk: SimDisk) -> None:
    content = disk.read_whole(f"{FIRST}.log")
    for bit in range(8 * 8, 12 * 8):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 0x80 >> (bit % 8)
        replace(disk, f"{FIRST}.log", bytes(damaged))
        assert verify(disk)[0], bit


def test_a_log_cut_at_any_byte_is_found(disk: SimDisk) -> None:
    content = disk.read_whole(f"{SECOND}.log")
    for size in range(1, len(content)):
        replace(disk, f"{SECOND}.log", content[:size])
        findings, _ = verify(disk)
        assert findings[0] == Finding(f"{SECOND}.log", 0, findings[0].what)
        assert findings[0].what.startswith("torn: "), findings


def test_zeros_at_the_end_are_found(disk: SimDisk) -> None:
    content = disk.read_whole(f"{SECOND}.log")
    replace(disk, f"{SECOND}.log", content + bytes(500))
    findings, _ = verify(disk)
    assert findings == [
        Finding(f"{SECOND}.log", len(content), "500 bytes, zeros and no batch"),
    ]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_every_flipped_bit_of_an_index_is_found(disk: SimDisk, suffix: str) -> None:
    """But for a time entry that then names another offset of its batch, as older Kafkas do."""
    content = disk.read_whole(FIRST + suffix)
    assert len(content) >= 24
    for bit in range(len(content) * 8):
        if suffix == ".timeindex" and bit == len(content) * 8 - 1:  # offset 7 becomes 6
            continue
        damaged = bytearray(content)
        damaged[bit // 8] ^= 0x80 >> (bit % 8)
        replace(disk, FIRST + suffix, bytes(damaged))
        findings, _ = verify(disk)
        assert [finding.path for finding in findings[:1]] == [FIRST + suffix], (bit, findings)


@pytest.mark.parametrize("name", [f"{9:020d}.snapshot", "partition.metadata"])
def test_damaged_small_files_are_found(disk: SimDisk, name: str) -> None:
    path = f"{LOG_FOLDER}/{name}"
    content = disk.read_whole(path)
    replace(disk, path, content[:-5])
    findings, _ = verify(disk)
    assert [finding.path for finding in findings] == [path]


def test_offsets_that_go_back_are_found(disk: SimDisk) -> None:
    batches = _batches()
    swapped = [batches[0], batches[2], batches[1], *batches[3:]]
    replace(disk, f"{FIRST}.log", b"".join(raw for _, raw in swapped))
    disk.remove(f"{FIRST}.index")
    disk.remove(f"{FIRST}.timeindex")
    findings, checked = verify(disk)
    assert [finding.what for finding in findings] == ["offset 2 follows 5: goes back"]
    assert checked.missing_offsets == 1


def test_a_gap_is_counted_and_no_finding(disk: SimDisk) -> None:
    header, raw = make_batch(20, 1, timestamp=5_000, epoch=2)
    disk.open(f"{SECOND}.log").write_at(disk.size(f"{SECOND}.log"), raw)
    findings, checked = verify(disk)
    assert not findings
    assert checked.missing_offsets == header.base_offset - 10


def test_a_log_that_ends_before_its_recovery_point_is_found(disk: SimDisk) -> None:
    points = encode_offsets({TopicPartition("topic", 0): 12})
    replace_file(disk, FOLDER, RECOVERY_POINTS, points)
    findings, _ = verify(disk)
    assert [finding.what for finding in findings] == ["topic-0 was durable up to 12 and ends at 10"]


def test_a_batch_that_is_being_written_is_no_finding(disk: SimDisk) -> None:
    _, raw = make_batch(10, 1, timestamp=5_000, epoch=2, value=b"y" * 200)
    end = disk.size(f"{SECOND}.log")
    file = disk.open(f"{SECOND}.log")
    file.write_at(end, raw[:100])
    findings, checked = verify(disk, pause=lambda: _ensure(file.write_at(end, raw) == len(raw)))
    assert not findings
    assert checked.batches == 7


def _ensure(is_done: bool) -> None:
    assert is_done


def test_a_segment_that_vanishes_is_no_finding(disk: SimDisk) -> None:
    found = look_into(disk, FOLDER)
    for name in disk.list(LOG_FOLDER):
        if name.startswith(f"{0:020d}"):
            disk.remove(f"{LOG_FOLDER}/{name}")
    findings: list[Finding] = []
    checked = Verifier(disk, findings.append).verify(found, found.partitions)
    assert not findings
    assert (checked.vanished, checked.segments) == (1, 1)


def test_a_record_that_the_crc_does_not_excuse(disk: SimDisk) -> None:
    """A producer may send nonsense under a right CRC: only a deep look finds it."""
    header, raw = make_batch(9, 2, timestamp=4_000, epoch=2)
    wrong = header.changed(record_count=1, max_timestamp=4_000).write(raw[61:])
    replace(disk, f"{SECOND}.log", bytes(wrong))
    for name in (".index", ".timeindex"):
        disk.remove(SECOND + name)
    assert not verify(disk)[0]
    findings, _ = verify(disk, deep=True)
    assert "bytes follow the last record" in findings[0].what


def test_an_empty_last_segment_ends_the_log_where_it_begins(disk: SimDisk) -> None:
    """As compaction leaves it: the recovery point lies there, and nothing is lost."""
    disk.open(f"{LOG_FOLDER}/{15:020d}.log", create=True)
    points = encode_offsets({TopicPartition("topic", 0): 15})
    replace_file(disk, FOLDER, RECOVERY_POINTS, points)
    findings, checked = verify(disk)
    assert not findings
    assert checked.missing_offsets == 5
