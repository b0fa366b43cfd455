"""Batches that Kafka's Java client wrote and read; tests/compat/java-records made them."""

import base64
import json
import lzma
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runnel.native import records
from runnel.native.columns import ControlType, Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.batch import BatchHeader

RECORDED = Path(__file__).parent / "recorded/batches.jsonl.xz"
NO_LIMIT = 1 << 30


class Case(NamedTuple):
    raw: bytes
    batch: dict[str, Any]
    records: list[Record]


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)


def _record(line: dict[str, Any]) -> Record:
    return Record(
        _bytes(line["key"]),
        _bytes(line["value"]),
        line["timestamp"],
        [(key, _bytes(value)) for key, value in line["headers"]],
        line["offset"],
    )


def _load() -> dict[str, Case]:
    cases = {}
    with lzma.open(RECORDED, "rt") as lines:
        for line in map(json.loads, lines):
            (batch,) = line["batches"]
            raw = base64.b64decode(line["raw"])
            cases[line["name"]] = Case(raw, batch, [_record(one) for one in batch["records"]])
    return cases


CASES = _load()
ORDINARY = [name for name, case in CASES.items() if case.records and not case.batch["control"]]
CONSECUTIVE = [name for name in ORDINARY if "gaps" not in name]
# Without the two whose delta base cannot be read back: the producer's times, the delete horizon.
UNCOMPRESSED = [
    f"none: {kind}"
    for kind in ("mixed", "one record", "idempotent", "transactional", "gaps", "several blocks")
]

each_case = pytest.mark.parametrize("name", CASES)
each_ordinary = pytest.mark.parametrize("name", ORDINARY)
pytestmark = pytest.mark.usefixtures("decoder")


def test_the_recording_has_every_codec_and_kind() -> None:
    assert {case.batch["codec"] for case in CASES.values()} == set(Compression)
    assert len(CASES) == 9 * len(Compression) + 3


@each_case
def test_decodes_to_the_records_that_java_reads(name: str) -> None:
    raw, batch, expected = CASES[name]
    found = records.decode(raw, max_records=NO_LIMIT, max_bytes=NO_LIMIT, control=True)
    assert list(found.rows()) == expected
    assert found.position == len(raw)
    assert found.next_offset == batch["last_offset"] + 1
    (rows,) = found.batches
    header = rows.header
    assert (rows.position, rows.first_row, rows.row_count) == (0, 0, len(expected))
    assert header.base_offset == batch["base_offset"]
    assert header.producer_id == batch["producer_id"]
    assert header.partition_leader_epoch == batch["leader_epoch"]
    assert header.is_transactional == batch["transactional"]


@each_ordinary
def test_latest_record_is_the_one_java_finds(name: str) -> None:
    raw, batch, _ = CASES[name]
    expected = (batch["offset_of_max_timestamp"], batch["max_timestamp"])
    assert records.max_timestamp(raw) == expected


@each_ordinary
def test_search_by_time_is_a_linear_scan(name: str) -> None:
    raw, _, expected = CASES[name]
    for wanted in (expected[0], expected[len(expected) // 2], expected[-1]):
        first = next(one for one in expected if one.timestamp >= wanted.timestamp)
        found = records.first_at_or_after(raw, wanted.timestamp)
        assert found == (first.offset, first.timestamp)
        later = next(
            (
                one
                for one in expected
                if one.timestamp >= wanted.timestamp and one.offset > first.offset
            ),
            None,
        )
        assert records.first_at_or_after(raw, wanted.timestamp, first.offset + 1) == (
            None if later is None else (later.offset, later.timestamp)
        )
    latest = max(one.timestamp for one in expected)
    assert records.first_at_or_after(raw, latest + 1) is None


@pytest.mark.parametrize("name", CONSECUTIVE)
def test_validates(name: str) -> None:
    raw, batch, expected = CASES[name]
    summary = records.validate(raw, require_keys=False)
    assert summary.record_count == len(expected)
    assert summary.max_timestamp == batch["max_timestamp"]
    assert summary.min_timestamp == min(one.timestamp for one in expected)
    assert summary.compression == batch["codec"]


@each_ordinary
@pytest.mark.parametrize("codec", Compression)
def test_recompresses_without_a_change_to_the_records(name: str, codec: Compression) -> None:
    raw, _, expected = CASES[name]
    packed = records.recompress(raw, codec)
    found = records.decode(packed, max_records=NO_LIMIT, max_bytes=NO_LIMIT)
    assert list(found.rows()) == expected
    before, after = BatchHeader.read(raw), BatchHeader.read(packed)
    assert after.compression == codec
    same = before.changed(attributes=after.attributes, length=after.length, crc=after.crc)
    assert same == after


@pytest.mark.parametrize("name", UNCOMPRESSED)
def test_encodes_the_very_bytes_that_java_writes(name: str) -> None:
    raw, batch, expected = CASES[name]
    built = encode(
        expected,
        base_offset=batch["base_offset"],
        partition_leader_epoch=batch["leader_epoch"],
        producer_id=batch["producer_id"],
        producer_epoch=batch["producer_epoch"],
        base_sequence=batch["base_sequence"],
        transactional=batch["transactional"],
    )
    assert built == raw


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_control_batches_are_named_and_left_out(kind: ControlType) -> None:
    raw = CASES[f"control: {kind.name}"].raw
    found = records.decode(raw, max_records=NO_LIMIT, max_bytes=NO_LIMIT)
    assert found.row_count == 0
    assert [rows.control for rows in found.batches] == [kind]
    assert found.next_offset == CASES[f"control: {kind.name}"].batch["last_offset"] + 1
