"""Fields and types of JSON values, found at once or one by one: the same either way."""

import json

import pyarrow as pa
import pytest

from runnel.arrow.inferring import MAX_DEPTH, inferred, known_only, merged

VALUES = [
    {"id": 1, "at": "2026-01-31T12:00:00Z", "who": {"name": "ann"}, "tags": ["a"], "x": None},
    {"id": 2, "amount": 1.5, "who": {"age": 3}, "lines": [{"n": 1}], "ok": True},
    {"id": 3, "amount": 2, "empty": [], "nested": {"deep": {"n": None}}},
]
WANTED = {
    "id": pa.int64(),
    "at": pa.string(),
    "who": pa.struct([("name", pa.string()), ("age", pa.int64())]),
    "tags": pa.list_(pa.string()),
    "amount": pa.float64(),
    "lines": pa.string(),
    "ok": pa.bool_(),
}


def fields(values: "list[bytes | None]") -> dict[str, pa.DataType]:
    found = known_only(inferred(pa.array(values, pa.binary())))
    return {} if found is None else {field.name: field.type for field in found}


@pytest.mark.parametrize("more", [[], [None], [b"{bad", b"[1]", b"7", b"\xff"]])
def test_fields_of_all_values(more: "list[bytes | None]") -> None:
    values: list[bytes | None] = [json.dumps(value).encode() for value in VALUES]
    assert fields(values + more) == WANTED


def test_what_does_not_go_together_is_text() -> None:
    assert fields([b'{"a":1}', b'{"a":"x"}']) == {"a": pa.string()}
    assert fields([b'{"a":{"b":1}}', b'{"a":[1]}']) == {"a": pa.string()}
    assert fields([b'{"a":123456789012345678901234567890}', b'{"a":"x"}']) == {"a": pa.string()}


def test_names_and_depths_that_no_column_has() -> None:
    assert fields([rb'{"a\ud800": 1}']) == {"a?": pa.int64()}
    for depth in (600, 100_000):  # at once and one by one
        found = inferred(pa.array([b'{"a":' * depth + b"1" + b"}" * depth], pa.binary()))
        assert str(found).count("struct") <= MAX_DEPTH


def test_nothing_is_known_of_nothing() -> None:
    assert fields([]) == fields([None]) == fields([b"{}"]) == fields([b'{"a":null}']) == {}


def test_fields_keep_their_order_when_types_are_merged() -> None:
    one, other = pa.struct([("b", pa.int64())]), pa.struct([("a", pa.int64()), ("b", pa.float64())])
    assert merged(one, other) == pa.struct([("b", pa.float64()), ("a", pa.int64())])
