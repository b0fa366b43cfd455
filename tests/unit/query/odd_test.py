"""Names, times and values that are odd and right: what SQL shows of them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer

from runnel.query import Connection, QueryError
from runnel.query.far_times import time_text
from runnel.testing import RunnelBroker
from tests.support.command import Runnel

SAMPLED = 256  # records at either end of a partition, by which columns are judged
WHOLE = {"o": {"n": 1, "s": "a", "in": {"l": [1, 2]}}, "l": [1], "ll": [[1], [2]], "of": [{"a": 1}]}
ODD = {
    "o": {"n": 1.5, "s": "b", "in": {"l": [3, 2.5]}},
    "l": [2.5, 7],
    "of": [{"a": 0.5}, {"a": 2}],
}
FAR_MS = 1_767_225_600_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as running:
        for name in ("nested", "Twin", "twin", "shop.lines", "shop.orders", "clicks.json", "t.csv"):
            running.create_topic(name)
        running.create_topic("far", config={"message.timestamp.after.max.ms": (1 << 63) - 1})
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        for document in [*[WHOLE] * SAMPLED, ODD, {"o": None}, *[WHOLE] * SAMPLED]:
            producer.produce("nested", json.dumps(document))
        for name in ("Twin", "shop.lines", "shop.orders", "clicks.json", "t.csv"):
            producer.produce(name, name)
        producer.produce("far", b'{"message": "far", "level": "info"}', timestamp=FAR_MS)
        producer.produce("far", b'{"message": "near", "level": "info"}')
        assert producer.flush(30) == 0
        yield running


@pytest.fixture
def connection(broker: RunnelBroker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers) as opened:
        yield opened


def test_numbers_within_others_are_not_rounded(connection: Connection) -> None:
    text = f'select o, l, ll, "of" from nested where offset between {SAMPLED - 1} and {SAMPLED + 1}'
    before, odd, empty = connection.sql(text).fetchall()
    assert before == (WHOLE["o"], WHOLE["l"], WHOLE["ll"], WHOLE["of"])
    assert odd == (
        {"n": None, "s": "b", "in": {"l": [3, None]}}, [None, 7], None, [{"a": None}, {"a": 2}]
    )  # fmt: skip
    assert empty == (None, None, None, None)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("INTEGER[2]", [None, 7]),
        ('STRUCT(x TINYINT, "a b" BIGINT)', None),
        ("UBIGINT[]", [None, 7]),
        ("DOUBLE[]", [2.5, 7.0]),
        ("JSON[]", ["2.5", "7"]),
    ],
)
def test_declared_types_within_others(broker: RunnelBroker, kind: str, found: Any) -> None:  # noqa: ANN401
    with Connection(broker.bootstrap_servers, schemas={"nested": f"l {kind}"}) as opened:
        row = opened.sql(f"select l from nested where offset = {SAMPLED}").fetchone()
    assert row is not None and row[0] in (found, {"x": None, "a b": None})


def test_maps_of_whole_numbers(broker: RunnelBroker) -> None:
    schemas = {"nested": "o MAP(VARCHAR, STRUCT(l BIGINT[]))"}
    with Connection(broker.bootstrap_servers, schemas=schemas) as opened:
        row = opened.sql(f"select o['in'].l from nested where offset = {SAMPLED}").fetchone()
    assert row == ([3, None],)


@pytest.mark.parametrize("mode", ["auto", "broker"])
@pytest.mark.parametrize("then", ["1900-01-01", "1969-12-31 23:59:59.999+00", "1970-01-01"])
def test_times_before_1970(broker: RunnelBroker, mode: str, then: str) -> None:
    with Connection(broker.bootstrap_servers, read_mode=mode) as opened:
        count = opened.sql(f"select count(*) from nested where timestamp >= '{then}'").fetchone()
        assert count == (2 * SAMPLED + 2,)
        none = opened.sql(f"select count(*) from nested where timestamp < '{then}'").fetchone()
        assert none == (0,)


def test_topics_that_differ_in_case_alone_are_refused(connection: Connection) -> None:
    for name in ("Twin", "twin", "TWIN"):
        with pytest.raises(QueryError, match="Twin and twin differ in case alone"):
            connection.sql(f"select value from {name}")


def test_names_with_a_dot(connection: Connection) -> None:
    both = "select a.value, b.value from shop.lines a, shop.orders b"
    assert connection.sql(both).fetchall() == [("shop.lines", "shop.orders")]
    assert connection.sql('select value from "clicks.json"').fetchall() == [("clicks.json",)]
    assert connection.sql("select value from t.csv").fetchall() == [("t.csv",)]
    for missing in ("shop.nothing", '"nothing.json"'):
        with pytest.raises(QueryError, match="nothing"):
            connection.sql(f"select * from {missing}")


def test_times_after_the_year_9999(broker: RunnelBroker, connection: Connection) -> None:
    sql = Runnel(broker.bootstrap_servers)
    with duckdb.connect() as duck:
        (told,) = duck.sql(f"select make_timestamp({FAR_MS * 1000})::varchar").fetchall()
    far = told[0].replace(" ", "T") + ".000Z"
    rows = sql("sql", "select timestamp as t from far order by 1 desc", "--json").json_lines
    assert rows[0] == {"t": far} and rows[1]["t"].startswith("20")
    lines = sql("logs", "tail", "far", "--json").json_lines
    assert [row["timestamp"][:2] for row in lines] == ["20", "57"] and lines[1]["timestamp"] == far
    assert f"{told[0]}.000Z" in sql("logs", "search", "far", "far").out
    text = (
        "select to_timestamp(1767225600000)::timestamp, 'infinity'::timestamptz,"
        " '20000-02-29'::date, [to_timestamp(1767225600000)], {'a': '-infinity'::date},"
        " timestamp '2024-01-02'"
    )
    assert connection.sql(text).fetchone() == (
        far[:-1], "infinity", "20000-02-29", [far], {"a": "-infinity"}, datetime(2024, 1, 2)
    )  # fmt: skip


def test_texts_of_times_are_those_of_python_where_it_has_them() -> None:
    for moment in [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)]:
        us = round(moment.timestamp()) * 1_000_000
        assert time_text(us) == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert time_text(-62_135_596_800_000_000 - 1000) == "0000-12-31T23:59:59.999Z"
