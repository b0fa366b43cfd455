"""Envelopes and plain records as changes; which change of a key counts."""

import base64
import json
import random
from typing import Any

import pytest

from runnel.pipelines.changes import DELETE, TOMBSTONE, UPSERT, Change, Order, latest
from runnel.pipelines.debezium import BadChangeError, Reader, all_changes

DEBEZIUM = Reader("debezium")
PLAIN = Reader("plain")


def envelope(op: str, row: Any, *, before: Any = None, **source: Any) -> bytes:  # noqa: ANN401
    return json.dumps({"before": before, "after": row, "source": source, "op": op}).encode()


def change_of(reader: Reader, key: bytes | None, value: bytes | None, offset: int = 0) -> Change:
    found = reader.change(key, value, offset)
    assert isinstance(found, Change)
    return found


def test_an_envelope_with_and_without_its_schema_is_the_same() -> None:
    bare = envelope("c", {"id": 1, "name": "ann"}, ts_ms=5, lsn=77)
    wrapped = json.dumps({"schema": {"type": "struct"}, "payload": json.loads(bare)}).encode()
    key = b'{"schema": {"type": "struct"}, "payload": {"id": 1}}'
    found = change_of(DEBEZIUM, b'{"id":1}', bare, 3)
    assert found == change_of(DEBEZIUM, key, wrapped, 3)
    assert found == Change('{"id":1}', UPSERT, Order(5, "77".zfill(20), 3), '{"id":1,"name":"ann"}')


def test_a_delete_has_its_key_and_nothing_else() -> None:
    found = change_of(DEBEZIUM, b'{"id":1}', envelope("d", None, before={"id": 1, "name": "a"}))
    assert (found.op, found.row) == (DELETE, '{"id":1}')
    keyless = Reader("debezium", ("id",))
    assert change_of(keyless, None, envelope("d", None, before={"id": 1})).row == '{"id":1}'
    assert change_of(DEBEZIUM, b'{"id":1}', None, 9).op == TOMBSTONE


def test_the_schema_says_what_numbers_stand_for() -> None:
    fields = [
        {"field": "day", "name": "io.debezium.time.Date"},
        {"field": "at", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "price", "name": "org.apache.kafka.connect.data.Decimal"}
        | {"parameters": {"scale": "2"}},
        {"field": "id"},
    ]
    row: dict[str, Any] = {"id": 1, "day": 20_000, "at": 1_700_000_000_000_001, "price": None}
    row["price"] = base64.b64encode((-12345).to_bytes(2, "big", signed=True)).decode()
    schema = {"fields": [{"field": "after", "fields": fields}]}
    payload = json.loads(envelope("u", row))
    value = json.dumps({"schema": schema, "payload": payload}).encode()
    assert json.loads(change_of(DEBEZIUM, b'{"id":1}', value).row) == {
        "id": 1,
        "day": "2024-10-04",
        "at": "2023-11-14T22:13:20.000001+00:00",
        "price": "-123.45",
    }


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (b'{"id":1}', b"{bad", "not JSON"),
        (b'{"id":1}', b"[1]", "not a JSON object"),
        (b'{"id":1}', b'{"id":1}', "its op is null"),
        (b'{"id":1}', envelope("c", None), "has no after"),
        (None, envelope("c", {"id": 1}), "no key"),
        (b"{}", envelope("c", {"id": 1}), "no columns"),
    ],
)
def test_what_is_no_change_says_why(key: bytes | None, value: bytes, why: str) -> None:
    with pytest.raises(BadChangeError, match=why):
        DEBEZIUM.change(key, value, 0)


@pytest.mark.parametrize(
    "fields",
    [
        *(1, [1], [[]], ["x"], [{"field": "after", "fields": 1}]),
        [{"field": "after", "fields": [{"field": [], "name": {}}]}],
        [{"field": "after", "fields": [{"field": "id", "name": ["x"], "parameters": 1}]}],
    ],
)
def test_a_schema_that_is_none_says_nothing(fields: Any) -> None:  # noqa: ANN401
    value = {"schema": {"fields": fields}, "payload": {"op": "c", "after": {"id": 1}}}
    found = change_of(Reader("debezium"), b'{"id": 1}', json.dumps(value).encode())
    assert json.loads(found.row) == {"id": 1}


def test_odd_texts_and_depths_are_taken_or_bad_and_never_raise() -> None:
    deep = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    scale: dict[str, Any] = {"field": "d", "name": "org.apache.kafka.connect.data.Decimal"}
    scale["parameters"] = {"scale": "-99999999999999999999"}
    far = {"schema": {"fields": [scale]}, "payload": {"d": "YQ=="}}
    records = [
        (b'{"id": 1}', rb'{"a": "cut \ud83d"}', 0),
        (b'{"id": 1}', deep, 1),
        (deep, b'{"a": 1}', 2),
        (b'{"id": 1}', json.dumps(far).encode(), 3),
    ]
    changes, bad, _ = all_changes(Reader("plain"), records)
    assert json.loads(changes[0].row)["a"] == "cut ?"
    assert {1, 3} <= set(bad)


def test_truncates_and_messages_are_left_out_and_counted() -> None:
    records = [(None, envelope(op, None), n) for n, op in enumerate("ttm")]
    changes, bad, left_out = all_changes(DEBEZIUM, records)
    assert (changes, bad, left_out) == ({}, {}, {"truncate": 2, "message": 1})


def test_plain_topics_have_rows_and_tombstones() -> None:
    assert change_of(PLAIN, b"ann", b'{"age":3}').row == '{"age":3,"key":"ann"}'
    assert change_of(PLAIN, b"ann", None).row == '{"key":"ann"}'
    assert change_of(Reader("plain", ("id",)), b"7", None).row == '{"id":7}'
    assert change_of(Reader("plain", ("id",)), b"x", b'{"id":7,"a":1}').key == '{"id":7}'


def made(op: str, ts_ms: int, offset: int) -> Change:
    return Change("k", op, Order(ts_ms, "", offset), f"{ts_ms}")


def test_the_last_change_counts_however_they_come() -> None:
    changes = [made(UPSERT, ts, ts) for ts in range(5)] + [made(DELETE, 5, 5)]
    for seed in range(20):
        shuffled = [*changes, *changes]
        random.Random(seed).shuffle(shuffled)
        moved = [c._replace(order=c.order._replace(offset=n)) for n, c in enumerate(shuffled)]
        assert latest(moved)["k"].op == DELETE


def test_a_tombstone_belongs_to_the_delete_before_it() -> None:
    late = [made(DELETE, 5, 0), made(TOMBSTONE, 0, 1), made(UPSERT, 6, 2)]
    assert latest(late)["k"] == late[2]
    assert latest(late[:2])["k"] == late[0]
    assert latest([made(UPSERT, 6, 1), made(TOMBSTONE, 0, 2)])["k"].order == Order(6, "", 2)
    assert latest([made(TOMBSTONE, 0, 2)])["k"].op == TOMBSTONE
    assert latest([made(TOMBSTONE, 0, 2), made(UPSERT, 1, 3)])["k"].op == UPSERT
