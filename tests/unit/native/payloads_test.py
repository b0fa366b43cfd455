"""Columns of Arrow become batches that the decoder, and so Kafka, reads as the same records."""

import contextlib
import importlib
import struct
from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.client.partitioner import partition_of
from runnel.native import _payloads_py
from runnel.native.columns import ArrowBinary, ArrowHeaders, Payload, Record
from runnel.native.compression import Compression
from runnel.native.encode import batch_of
from runnel.native.records import decode, validate

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
blobs = st.none() | st.binary(max_size=40)
pairs = st.lists(st.tuples(st.text(max_size=5), blobs), max_size=3)
rows = st.lists(st.tuples(blobs, blobs, st.none() | pairs), min_size=1, max_size=40)
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


@pytest.fixture(params=["_payloads", "_payloads_py"])
def encoder(request: pytest.FixtureRequest) -> ModuleType:
    try:
        return importlib.import_module(f"runnel.native.{request.param}")
    except ImportError:
        pytest.skip(f"{request.param} was not built: no C compiler")


def binary(array: pa.Array) -> ArrowBinary:
    validity, offsets, data = array.buffers()
    return ArrowBinary(validity, offsets, data, array.offset)


def header_column(array: pa.Array) -> ArrowHeaders:
    validity, offsets = array.buffers()[:2]
    names, values = array.values.field(0), array.values.field(1)
    return ArrowHeaders(validity, offsets, array.offset, binary(names), binary(values))


def columns_of(
    given_rows: list[Row], skipped: int
) -> tuple[ArrowBinary, ArrowBinary, ArrowHeaders]:
    """Of a slice, so that none begins where its buffers do."""
    lists = [
        None if row[2] is None else [{"key": key, "value": value} for key, value in row[2]]
        for row in given_rows
    ]
    keys = pa.array([row[0] for row in given_rows], pa.binary()).slice(skipped)
    values = pa.array([row[1] for row in given_rows], pa.binary()).slice(skipped)
    return binary(keys), binary(values), header_column(pa.array(lists, HEADERS).slice(skipped))


def records_of(payload: Payload) -> list[Record]:
    batch = batch_of(payload, codec=Compression.LZ4, producer_id=7, producer_epoch=1)
    assert validate(batch, require_keys=False).record_count == payload.record_count
    return list(decode(batch, max_records=10_000, max_bytes=1 << 20).rows())


@settings(deadline=None)
@given(rows=rows, skipped=st.integers(0, 3), lanes=st.integers(1, 4))
def test_every_row_comes_out_once_and_in_order(
    encoder_pairs: list[ModuleType], rows: list[Row], skipped: int, lanes: int
) -> None:
    skipped = min(skipped, len(rows) - 1)
    keys, values, headers = columns_of(rows, skipped)
    rows = rows[skipped:]
    numbers = [row % lanes for row in range(len(rows))]
    for module in encoder_pairs:
        payloads = module.Payloads(lanes, 200)
        found: list[list[Record]] = [[] for _ in range(lanes)]
        packed = bytearray(struct.pack(f"={len(rows)}i", *numbers))
        at = 0
        while at < len(rows):
            at = payloads.append(packed, keys, values, headers, at, len(rows), 1000 + at)
            if at < len(rows):
                full = payloads.take(numbers[at])
                assert full is not None, "stopped although there is room"
                found[numbers[at]] += records_of(full)
        for lane in range(lanes):
            rest = payloads.take(lane)
            if rest is not None:
                found[lane] += records_of(rest)
            assert payloads.take(lane) is None
        assert payloads.buffered_bytes == 0
        for lane in range(lanes):
            wanted = rows[lane::lanes]
            assert [(row.key, row.value, list(row.headers)) for row in found[lane]] == [
                (key, value, list(pair or [])) for key, value, pair in wanted
            ]


@pytest.fixture(scope="module")
def encoder_pairs() -> list[ModuleType]:
    found = [_payloads_py]
    with contextlib.suppress(ImportError):
        found.append(importlib.import_module("runnel.native._payloads"))
    return found


@settings(deadline=None)
@given(keys=st.lists(blobs, min_size=1, max_size=30), count=st.integers(1, 9))
def test_keys_go_where_java_puts_them(
    encoder_pairs: list[ModuleType], keys: list[bytes | None], count: int
) -> None:
    for module in encoder_pairs:
        packed = module.assign(binary(pa.array(keys, pa.binary())), len(keys), count, 2, 4)
        lanes = struct.unpack(f"={len(keys)}i", packed)
        for row, key in enumerate(keys):
            assert lanes[row] == (
                (2 + row // 4) % count if key is None else partition_of(key, count)
            )


def test_without_keys_rows_go_in_runs(encoder: ModuleType) -> None:
    packed = encoder.assign(None, 7, 3, 1, 2)
    assert struct.unpack("=7i", packed) == (1, 1, 2, 2, 0, 0, 1)


def test_a_batch_never_exceeds_its_limit_but_for_one_large_row(encoder: ModuleType) -> None:
    values = binary(pa.array([b"x" * 500, b"y", b"z"], pa.binary()))
    payloads = encoder.Payloads(1, 100)
    lanes = bytearray(12)
    assert payloads.append(lanes, None, values, None, 0, 3, 5) == 1
    first = payloads.take(0)
    assert (first.record_count, len(first.data) > 500) == (1, True)
    assert payloads.append(lanes, None, values, None, 1, 3, 9) == 3
    rest = payloads.take(0)
    assert (rest.record_count, rest.base_timestamp, rest.max_timestamp) == (2, 9, 9)


def test_later_rows_keep_their_own_time(encoder: ModuleType) -> None:
    values = binary(pa.array(["a", "b"], pa.string()))
    payloads = encoder.Payloads(1, 1000)
    payloads.append(bytearray(8), None, values, None, 0, 1, 100)
    payloads.append(bytearray(8), None, values, None, 1, 2, 250)
    assert [row.timestamp for row in records_of(payloads.take(0))] == [100, 250]


@pytest.mark.parametrize("lane", [2, 1 << 30, -1])
def test_a_lane_that_is_not_there_is_refused(encoder: ModuleType, lane: int) -> None:
    values = binary(pa.array(["a", "b"], pa.string()))
    payloads = encoder.Payloads(2, 1000)
    with pytest.raises(IndexError, match=str(lane)):
        payloads.append(bytearray(struct.pack("=2i", 1, lane)), None, values, None, 0, 2, 5)
    assert [row.value for row in records_of(payloads.take(1))] == [b"a"]
