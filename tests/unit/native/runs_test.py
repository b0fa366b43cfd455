"""Batches read in runs give what they give one by one, also if their bytes are not sound."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runnel.errors import ErrorCode, RunnelError
from runnel.native import backend, records
from runnel.native.columns import Record, RecordColumns
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.batch import TRANSACTIONAL
from tests.unit.native.strategies import records as some_records

pytestmark = pytest.mark.usefixtures("decoder")
examples = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches one after the other, with gaps, of several kinds and producers."""
    out, offset = bytearray(), draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(0, 8))):
        content = [record._replace(offset=-1) for record in draw(some_records(4))]
        out += encode(
            content,
            base_offset=offset,
            codec=draw(st.sampled_from([Compression.NONE] * 5 + [Compression.LZ4])),
            producer_id=draw(st.integers(1, 2)),
            producer_epoch=0,
            base_sequence=0,
            transactional=draw(st.booleans()),
            log_append_time_ms=draw(st.sampled_from([None, None, None, 77])),
        )
        offset += len(content) + draw(st.sampled_from([0, 0, 0, 5]))
    return bytes(out)


def kinds_by_row(columns: RecordColumns) -> list[tuple[int, int]]:
    """What a reader looks at: attributes, and the producer of what is transactional."""
    found = []
    for batch in columns.batches:
        header = batch.header
        producer_id = header.producer_id if header.attributes & TRANSACTIONAL else -1
        found += [(header.attributes, producer_id)] * batch.row_count
    return found


def outcome(data: bytes, runs: bool, **limits: int) -> object:
    try:
        columns = records.decode(data, runs=runs, **limits)  # type: ignore[arg-type]  # numbers all
    except RunnelError as error:
        return error.code, str(error)
    rows = [row._replace(headers=list(row.headers)) for row in columns.rows()]
    payload_bytes = sum(batch.payload_bytes for batch in columns.batches)
    end = columns.position, columns.next_offset
    return rows, kinds_by_row(columns), payload_bytes, end


@examples
@given(
    data=logs(),
    max_records=st.integers(1, 20),
    max_bytes=st.sampled_from([1, 50, 1 << 20]),
    skipped=st.integers(0, 12),
    wanted=st.integers(0, 30),
)
def test_runs_and_single_batches_agree(
    data: bytes, max_records: int, max_bytes: int, skipped: int, wanted: int
) -> None:
    first = int.from_bytes(data[:8], "big") + skipped
    limits = {
        "from_offset": first,
        "up_to_offset": first + wanted,
        "max_records": max_records,
        "max_bytes": max_bytes,
    }
    assert outcome(data, True, **limits) == outcome(data, False, **limits)


@examples
@given(data=logs().filter(bool), where=st.integers(0), what=st.integers(0, 255), crc=st.booleans())
def test_unsound_bytes_fail_alike(data: bytes, where: int, what: int, crc: bool) -> None:
    broken = bytearray(data)
    broken[where % len(broken)] = what
    limits = {"max_records": 1000, "max_bytes": 1 << 20, "verify_crc": crc}
    assert outcome(bytes(broken), True, **limits) == outcome(bytes(broken), False, **limits)


def test_a_wrong_crc_in_a_run_is_found() -> None:
    whole = [encode([Record(b"k", b"v" * 10, 5)], base_offset=at) for at in range(3)]
    whole[1][-1] ^= 1
    with pytest.raises(RunnelError, match="offset 1 ") as raised:
        records.decode(b"".join(whole), runs=True, max_records=10, max_bytes=1000)
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_run_is_one_entry_where_it_is_compiled() -> None:
    whole = b"".join(encode([Record(b"k", b"v", 5)], base_offset=at) for at in range(100))
    columns = records.decode(whole, runs=True, max_records=1000, max_bytes=100_000)
    assert columns.row_count == 100
    compiled = backend.Columns.__module__ == "runnel.native._records"
    assert len(columns.batches) == (1 if compiled else 100)
