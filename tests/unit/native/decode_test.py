"""What goes into a batch comes out of it, whole or in pieces, and pyarrow agrees."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runnel.errors import ErrorCode, RunnelError
from runnel.native import records
from runnel.native.columns import BinaryColumn, ControlType, Record, RecordColumns
from runnel.native.compression import Compression
from runnel.native.encode import encode
from tests.unit.native.strategies import batches

NO_LIMIT = 1 << 30
pytestmark = pytest.mark.usefixtures("decoder")
# The decoder is exchanged once per test and not per example, which is what is wanted.
examples = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def plain(rows: list[Record]) -> list[Record]:
    return [row._replace(headers=list(row.headers)) for row in rows]


def to_arrow(columns: RecordColumns) -> pa.Table:
    def binary(column: BinaryColumn, kind: pa.DataType) -> pa.Array:
        rows = len(column.offsets) // 4 - 1
        buffers = [pa.py_buffer(column.validity), pa.py_buffer(column.offsets)]
        return pa.Array.from_buffers(kind, rows, [*buffers, pa.py_buffer(column.data)])

    def int64(buffer: bytearray) -> pa.Array:
        return pa.Array.from_buffers(pa.int64(), columns.row_count, [None, pa.py_buffer(buffer)])

    assert columns.headers is not None
    keys = binary(columns.headers.keys, pa.string())
    values = binary(columns.headers.values, pa.binary())
    pairs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    lists = pa.ListArray.from_buffers(
        pa.list_(pairs.type),
        columns.row_count,
        [None, pa.py_buffer(columns.headers.list_offsets)],
        children=[pairs],
    )
    table = pa.table(
        {
            "offset": int64(columns.offsets),
            "timestamp": int64(columns.timestamps),
            "key": binary(columns.keys, pa.binary()),
            "value": binary(columns.values, pa.binary()),
            "headers": lists,
        }
    )
    table.validate(full=True)
    return table


@examples
@given(st.lists(batches(), max_size=4))
def test_arrow_sees_the_records(made: list[tuple[list[Record], bytearray]]) -> None:
    data = b"".join(raw for _, raw in made)
    expected = [record for placed, _ in made for record in placed]
    columns = records.decode(data, max_records=NO_LIMIT, max_bytes=NO_LIMIT)
    table = to_arrow(columns)
    assert columns.keys.null_count == table["key"].null_count
    assert columns.values.null_count == table["value"].null_count
    rows = [
        Record(
            row["key"],
            row["value"],
            row["timestamp"],
            [(header["key"], header["value"]) for header in row["headers"]],
            row["offset"],
        )
        for row in table.to_pylist()
    ]
    assert rows == plain(expected) == list(columns.rows())
    assert columns.position == len(data)


@examples
@given(
    made=batches(),
    max_records=st.integers(1, 5),
    max_bytes=st.integers(0, 100),
    copies=st.integers(1, 3),
    parts=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_pieces_add_up_to_the_whole(
    made: tuple[list[Record], bytearray],
    max_records: int,
    max_bytes: int,
    copies: int,
    parts: tuple[bool, bool, bool],
) -> None:
    """`position` and `next_offset` lead from one piece to the next, without gap or repetition."""
    placed, _ = made
    span = placed[-1].offset - placed[0].offset + 1
    data, expected = bytearray(), []
    for copy in range(copies):
        moved = [record._replace(offset=record.offset + copy * span) for record in placed]
        data += encode(moved, base_offset=moved[0].offset)
        expected += [record.offset for record in moved]
    found: list[int] = []
    position, next_offset = 0, 0
    while position < len(data):
        piece = records.decode(
            data,
            position=position,
            from_offset=next_offset,
            max_records=max_records,
            max_bytes=max_bytes,
            keys=parts[0],
            values=parts[1],
            headers=parts[2],
        )
        offsets = list(memoryview(piece.offsets).cast("q"))
        assert 1 <= len(offsets) <= max_records
        size = len(piece.keys.data) + len(piece.values.data)
        if piece.headers is not None:
            size += len(piece.headers.keys.data) + len(piece.headers.values.data)
        assert size <= max_bytes or len(offsets) == 1
        found += offsets
        position, next_offset = piece.position, piece.next_offset
    assert found == expected
    assert next_offset == expected[-1] + 1


@examples
@given(made=batches(), data=st.data())
def test_a_range_of_offsets(made: tuple[list[Record], bytearray], data: st.DataObject) -> None:
    placed, raw = made
    bounds = st.integers(placed[0].offset - 1, placed[-1].offset + 2)
    first, end = data.draw(bounds), data.draw(bounds)
    columns = records.decode(
        raw, from_offset=max(0, first), up_to_offset=end, max_records=NO_LIMIT, max_bytes=NO_LIMIT
    )
    assert list(columns.rows()) == plain([one for one in placed if first <= one.offset < end])


def test_columns_that_are_left_out_keep_their_validity() -> None:
    raw = encode([Record(b"k", None), Record(None, b"v"), Record(b"kk", b"vv")])
    columns = records.decode(
        raw, max_records=9, max_bytes=9, keys=False, values=False, headers=False
    )
    assert columns.row_count == 3
    assert columns.headers is None
    assert columns.keys == BinaryColumn(bytearray([0b101]), 1, bytearray(), bytearray())
    assert columns.values == BinaryColumn(bytearray([0b110]), 1, bytearray(), bytearray())


def test_no_batches_at_all() -> None:
    columns = records.decode(b"", from_offset=7, max_records=1, max_bytes=1)
    assert (columns.row_count, columns.position, columns.next_offset) == (0, 0, 7)
    assert to_arrow(columns).num_rows == 0


def test_a_batch_that_is_not_whole_is_left_for_the_next_call() -> None:
    raw = encode([Record(b"k", b"v")])
    for size in range(len(raw)):
        columns = records.decode(raw + raw[:size], max_records=9, max_bytes=NO_LIMIT)
        assert (columns.row_count, columns.position) == (1, len(raw))


def test_batches_below_the_first_offset_are_skipped_unread() -> None:
    broken = encode([Record(b"k", b"v")])
    broken[-1] ^= 1
    raw = broken + encode([Record(b"k", b"v")], base_offset=1)
    columns = records.decode(raw, from_offset=1, max_records=9, max_bytes=NO_LIMIT)
    assert [row.offset for row in columns.rows()] == [1]


def test_a_wrong_crc_is_found_unless_not_asked_for() -> None:
    raw = encode([Record(b"k", b"v")])
    raw[-2] ^= 1
    with pytest.raises(RunnelError) as caught:
        records.decode(raw, max_records=9, max_bytes=NO_LIMIT)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    records.decode(raw, max_records=9, max_bytes=NO_LIMIT, verify_crc=False)


def test_rows_are_told_apart_by_batch() -> None:
    def marker(kind: int, offset: int) -> bytearray:
        key = b"\x00\x00" + kind.to_bytes(2, "big")
        return encode([Record(key, bytes(6))], base_offset=offset, producer_id=8, control=True)

    data = b"".join(
        [
            encode([Record(None, b"a"), Record(None, b"b")], producer_id=8, transactional=True),
            marker(0, 2),
            encode([Record(None, b"c")], base_offset=3),
            marker(99, 4),
        ]
    )
    columns = records.decode(data, max_records=9, max_bytes=NO_LIMIT)
    found = [(rows.first_row, rows.row_count, rows.control) for rows in columns.batches]
    assert found == [
        (0, 2, None),
        (2, 0, ControlType.ABORT),
        (2, 1, None),
        (3, 0, ControlType.UNKNOWN),
    ]
    assert columns.batches[0].header.producer_id == 8
    assert columns.batches[0].header.is_transactional
    assert columns.next_offset == 5


def test_header_keys_that_are_no_utf_8_are_replaced_as_in_java() -> None:
    raw = encode([Record(None, b"v", headers=[("ab", b"1"), ("\u00e9", b"2")])])
    raw = bytearray(raw.replace(b"\x04ab", b"\x04\xffb"))
    columns = records.decode(raw, max_records=9, max_bytes=NO_LIMIT, verify_crc=False)
    assert to_arrow(columns)["headers"].to_pylist() == [
        [{"key": "\ufffdb", "value": b"1"}, {"key": "\u00e9", "value": b"2"}]
    ]


def test_the_input_is_let_go() -> None:
    raw = encode([Record(b"k", b"v")], codec=Compression.LZ4)
    records.decode(raw, max_records=9, max_bytes=NO_LIMIT)
    records.validate(raw, require_keys=True)
    raw.append(0)  # BufferError while something still views it
