"""JSON as columns: the fast way and the exact way agree, and nothing moves to another row."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.arrow.ddl import struct_type
from runnel.arrow.decoding_json import JsonDecoder
from runnel.arrow.json_values import row_converter

ALL = (
    "b BOOLEAN, i INT, l BIGINT, d DOUBLE, s STRING, t TIMESTAMP, day DATE, a ARRAY<BIGINT>,"
    " o STRUCT<x: INT, y: STRING>"
)
SLOW = "s STRING, m MAP<STRING, INT>, n DECIMAL(6,2), raw BINARY, ts ARRAY<TIMESTAMP>"


def decoded(schema: str, values: list[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    decoder = JsonDecoder(struct_type(schema))
    arrays, bad = decoder.decode(pa.array(values, pa.binary()))
    names = struct_type(schema).names
    rows = pa.RecordBatch.from_arrays(arrays, names=names)
    rows.validate(full=True)
    return rows.to_pylist(), bad


def one(schema: str, value: bytes) -> tuple[dict[str, Any], str]:
    rows, bad = decoded(schema, [value])
    return rows[0], bad.get(0, "")


def test_fields_by_name_missing_and_unknown_ones() -> None:
    rows, bad = decoded("a INT, b STRING", [b'{"b":"x","a":1}', b'{"c":3}', b'{"a":null}'])
    assert rows == [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": None, "b": None}]
    assert bad == {}


def test_a_wrong_field_is_null_and_named_and_the_others_stay() -> None:
    row, why = one("a INT, b STRING", b'{"a":"x","b":"y"}')
    assert row == {"a": None, "b": "y"}
    assert why == 'a is "x", not int'


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"nope",
        b"[1]",
        b'"text"',
        b"12",
        b'{"a":1}{"a":2}',
        b'{"a":1} x}',
        b"\xff\xfe",
        b"null",
    ],
)
def test_what_is_no_object_is_bad(value: bytes) -> None:
    row, why = one("a INT", value)
    assert row == {"a": None} and why


@pytest.mark.parametrize("value", [b"", b"   ", b"\n"])
def test_nothing_is_null_and_not_bad(value: bytes) -> None:
    assert one("a INT", value) == ({"a": None}, "")


def test_a_null_value_is_a_row_of_nulls_in_its_place() -> None:
    rows, bad = decoded("a INT", [None, b'{"a":1}', None, b"{", b'{"a":2}', None])
    assert [row["a"] for row in rows] == [None, 1, None, None, 2, None]
    assert list(bad) == [3]


def test_only_nulls() -> None:
    assert decoded("a INT", [None, None]) == ([{"a": None}] * 2, {})
    assert decoded("a INT", []) == ([], {})


def test_bad_records_among_many_keep_their_places() -> None:
    values: list[bytes | None] = [b'{"a":%d}' % at for at in range(5000)]
    for at in (0, 1, 777, 4999):
        values[at] = b"broken"
    values[2500] = b'{"a":1}{"a":2}'
    values[2501] = b""
    rows, bad = decoded("a BIGINT", values)
    assert sorted(bad) == [0, 1, 777, 2500, 4999]
    expected = [at if at not in bad and at != 2501 else None for at in range(5000)]
    assert [row["a"] for row in rows] == expected


def test_white_space_around_is_no_matter() -> None:
    assert one("a INT", b' \n{"a": 1}\r\n') == ({"a": 1}, "")


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T12:00:00.123456+02:00", "2026-01-31T10:00:00.123456+00:00"),
        ("2026-01-31 12:00:00", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
    ],
)
def test_times(text: str, stamp: str) -> None:
    row, why = one("t TIMESTAMP", json.dumps({"t": text}).encode())
    assert (row["t"].isoformat(), why) == (stamp, "")


def test_a_number_is_a_time_in_seconds() -> None:
    assert one("t TIMESTAMP", b'{"t":86400}')[0]["t"].isoformat() == "1970-01-02T00:00:00+00:00"


def test_half_of_a_surrogate_pair_is_a_question_mark_as_spark_has_it() -> None:
    half = rb'"a\ud800 \ud83d\ude00"'
    assert one("s STRING", b'{"s": %b}' % half) == ({"s": "a? \U0001f600"}, "")
    assert one("s STRING", b'{"s": [%b]}' % half)[0] == {"s": '["a? \U0001f600"]'}
    assert one("m MAP<STRING, STRING>", b'{"m": {%b: "x"}}' % half)[1] == ""
    _, why = one("n BIGINT", b'{"n": %b}' % half)
    assert why == 'n is "a? \U0001f600", not bigint'
    assert one("s STRING", rb'{"s": "\\ud800"}') == ({"s": "\\ud800"}, "")


@pytest.mark.parametrize("depth", [600, 5_000, 100_000])
def test_what_is_nested_too_deep_to_be_text_is_bad(depth: int) -> None:
    for opened, closed in ((b'{"s":', b"}"), (b"[", b"]")):
        value = b'{"s":' + opened * depth + b"1" + closed * depth + b"}"
        rows, bad = decoded("s STRING, t STRUCT<a: INT>", [value, b'{"s": "good"}'])
        assert rows[1]["s"] == "good" and set(bad) <= {0}


def test_whatever_it_is_a_string_has_its_text() -> None:
    row, why = one("s STRING", b'{"s":{"a":[1,2.50,"x",null,true]}}')
    assert (row["s"], why) == ('{"a":[1,2.50,"x",null,true]}', "")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01", "1.5", "aGk=", "NaN", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=5,
)


def objects(names: list[str]) -> st.SearchStrategy[bytes]:
    made = st.dictionaries(st.sampled_from([*names, "other"]), json_values, max_size=4)
    whole = made.map(lambda value: json.dumps(value).encode())
    return whole | st.sampled_from([b"", b"{", b"[]", b'{"a":1}{"a":2}', b" {} ", b'{"s":"\xff"}'])


@pytest.mark.parametrize("schema", [ALL, SLOW])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_all_at_once_is_the_same_as_one_by_one(schema: str, data: st.DataObject) -> None:
    struct = struct_type(schema)
    values = data.draw(st.lists(st.none() | objects(struct.names), max_size=40))
    rows, bad = decoded(schema, values)
    convert = row_converter(struct)
    empty = dict.fromkeys(struct.names)
    for at, value in enumerate(values):
        fields, why = ({}, "") if value is None else convert(value)
        assert bad.get(at, "") == why
        expected = {**empty, **(fields or {})}
        assert _plain(rows[at]) == _plain(expected)


def _plain(row: dict[str, Any]) -> str:
    """NaN equals itself as text; pyarrow gives maps as pairs, as the converter does."""
    return repr(dict(sorted(row.items()))).replace(
        "zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc"
    )
