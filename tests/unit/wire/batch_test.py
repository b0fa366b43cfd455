"""The batch header against batches that `kio` made, and against the published layout."""

import datetime
import io
import random
import subprocess
import sys

import pytest
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import i8, i16, i32, i64

from runnel.wire.batch import (
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    compression_of,
    crc32c,
    crc_is_right,
    restamp_log_append_time,
    stamp,
)
from tools.declare import ROOT

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
START_MS = int(START.timestamp() * 1000)


def batch_of(count: int, attributes: int = 0) -> bytearray:
    records = tuple(
        Record(
            attributes=i8(0),
            timestamp=START + datetime.timedelta(milliseconds=index),  # type: ignore[arg-type]  # its nominal type
            offset=i64(index),
            key=None,
            value=b"value %d" % index,
            headers=(),
        )
        for index in range(count)
    )
    with io.BytesIO() as out:
        write_new_batch(
            out,
            NewRecordBatch(
                producer_id=i64(77),
                producer_epoch=i16(3),
                partition_leader_epoch=i32(1),
                base_sequence=i32(12),
                records=records,
                attributes=i16(attributes),
            ),
        )
        return bytearray(out.getvalue())


def test_a_header_reads_as_kio_wrote_it() -> None:
    batch = batch_of(5, TRANSACTIONAL)
    header = BatchHeader.read(b"pad" + batch, 3)
    assert header.fields() == (
        *(0, len(batch) - 12, 1, 2, header.crc, TRANSACTIONAL, 4),
        *(START_MS, START_MS + 4, 77, 3, 12, 5),
    )
    assert header.size == len(batch)
    assert (header.last_offset, header.next_offset) == (4, 5)
    assert header.is_transactional and not header.is_control
    assert BatchHeader.read(batch_of(1, CONTROL)).is_control
    assert crc_is_right(header, batch)


def test_every_flipped_bit_under_the_crc_is_noticed() -> None:
    batch = batch_of(2)
    for bit in range(17 * 8, len(batch) * 8):
        batch[bit // 8] ^= 1 << bit % 8
        assert not crc_is_right(BatchHeader.read(batch), batch), f"bit {bit}"
        batch[bit // 8] ^= 1 << bit % 8
    assert crc_is_right(BatchHeader.read(batch), batch)


def test_stamping_keeps_the_crc() -> None:
    frame = bytearray(b"head") + batch_of(3) + b"tail"
    before = BatchHeader.read(frame, 4)
    stamp(memoryview(frame), 4, 2**40, 2**31 - 1)
    after = BatchHeader.read(frame, 4)
    assert after == before.changed(base_offset=2**40, partition_leader_epoch=2**31 - 1)
    assert crc_is_right(after, frame, 4)
    theirs, _ = read_batch(bytes(frame[4:-4]), 0)
    assert [record.offset for record in theirs.records] == [2**40, 2**40 + 1, 2**40 + 2]
    assert frame[:4] == b"head" and frame[-4:] == b"tail"


def test_log_append_time_makes_the_crc_anew() -> None:
    frame = bytearray(b"head") + batch_of(3) + b"tail"
    before = BatchHeader.read(frame, 4)
    restamp_log_append_time(memoryview(frame), 4, START_MS + 1000)
    after = BatchHeader.read(frame, 4)
    assert after == before.changed(
        attributes=LOG_APPEND_TIME, max_timestamp=START_MS + 1000, crc=after.crc
    )
    assert after.crc != before.crc
    assert crc_is_right(after, frame, 4)
    assert frame[:4] == b"head" and frame[-4:] == b"tail"


@pytest.mark.parametrize("compression", range(5))
def test_compression_is_three_bits(compression: int) -> None:
    batch = batch_of(1, TRANSACTIONAL | LOG_APPEND_TIME)
    batch[CRC_START + 1] |= compression
    assert compression_of(b"x" + batch, 1) == BatchHeader.read(batch).compression == compression


def test_a_header_writes_what_it_reads() -> None:
    chance = random.Random(5)
    records = chance.randbytes(100)
    header = BatchHeader(*(0, 0, 4, 2, 0), *(16, 8, -5, 6, 7, 8, 9, 10))
    batch = header.write(records)
    read = BatchHeader.read(batch)
    assert read == header.changed(length=HEADER_SIZE + 100 - 12, crc=read.crc)
    assert crc_is_right(read, batch)
    assert batch[HEADER_SIZE:] == records


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the CRC catalogue
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_the_checksum_does_not_import_its_package() -> None:
    code = "import sys, runnel.wire.batch; print('email' in sys.modules)"
    environment = {"PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout == "False\n"
