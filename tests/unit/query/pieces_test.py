"""The pieces under `runnel sql`: statements that are mended, columns told from values, bounds."""

import random
from collections.abc import Collection, Mapping

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from runnel.arrow.interval import Interval
from runnel.arrow.ranges import Range
from runnel.cli.sql_shell import is_whole
from runnel.query.bounds import Bounds, Pruner
from runnel.query.json_shape import Column, json_columns, unique
from runnel.query.planning import FEW_OFFSETS, ends_of, pruned
from runnel.query.statements import may_show, mended, missing_table, unquoted_name
from runnel.spark.reads.assignment import TopicFound
from runnel.types import TopicPartition

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("value", pa.string()),
    ]
)


def _whole(statement: str) -> str:
    """Mended until the parser takes it."""
    with duckdb.connect() as duck:
        for _ in range(10):
            try:
                duck.extract_statements(statement)
            except duckdb.ParserException as error:
                better = mended(statement, str(error))
                assert better is not None, str(error)
                statement = better
            else:
                return statement
    raise AssertionError(statement)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("select max(offset) from t", 'select max("offset") from t'),
        ("select key, offset from t", 'select key, "offset" from t'),
        ("select key\nfrom t\nwhere offset > 5", 'select key\nfrom t\nwhere "offset" > 5'),
        ("from t order by offset desc", 'from t order by "offset" desc'),
        ("from t limit 5 offset 2", "from t limit 5 offset 2"),
        (
            "select offset from t where offset > 1 and v = 'offset' limit 1 offset 3",
            'select "offset" from t where "offset" > 1 and v = \'offset\' limit 1 offset 3',
        ),
        ("select '日本' as x, offset from t", "select '日本' as x, \"offset\" from t"),
        (f"select '{'日本' * 40}', offset from t", f"select '{'日本' * 40}', \"offset\" from t"),
        (
            "select 'e\u0301', '👩\u200d👧', offset from t",
            "select 'e\u0301', '👩\u200d👧', \"offset\" from t",
        ),
    ],
)
def test_offset_is_a_column_where_it_cannot_be_a_word_of_sql(typed: str, meant: str) -> None:
    assert _whole(typed) == meant


def test_a_mistake_elsewhere_is_not_mended() -> None:
    with duckdb.connect() as duck, pytest.raises(duckdb.ParserException) as caught:
        duck.extract_statements("selec offset from t")
    assert mended("selec offset from t", str(caught.value)) is None


def test_missing_relations_are_found_in_the_complaint() -> None:
    for typed, name in [
        ("select * from orders", "orders"),
        ('select * from "a-b" x', "a-b"),
        ("select * from a.b", "a.b"),
        ("select * from a.b.c", "a.b.c"),
        ("select '日本',\n 1 from shop.lines a, shop.orders b", "shop.orders"),
        ('select * from "shop" . "web-clicks"', "shop.web-clicks"),
        ("select * from raw.orders", "orders"),
        ("select * from memory.main.orders", "orders"),
    ]:
        with duckdb.connect() as duck, pytest.raises(duckdb.CatalogException) as caught:
            duck.execute(
                "create schema raw; create schema shop; create view shop.lines as select 1"
            )
            duck.execute(typed)
        assert missing_table(typed, str(caught.value)) == name


def test_names_that_need_quotes_and_have_none() -> None:
    topics = ["orders", "web", "web-clicks"]
    assert unquoted_name("select * from web-clicks", topics) == "web-clicks"
    assert unquoted_name('select * from "web-clicks"', topics) is None


def test_whether_inferred_columns_are_seen() -> None:
    assert not may_show(["id"], "select count(*) from orders")
    assert may_show(["id"], "select ID from orders")
    assert may_show(["id"], "select * from orders")
    assert may_show(["id"], "from orders")


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("select 1;", True),
        ("select 1", False),
        ("select ';", False),
        ("select ';'", False),
        ("select ';';", True),
        ("select 1; -- done", True),
        ("select 1 -- ;", False),
        ("select /* ; */ 1\n;\n", True),
        ("select /* ;", False),
    ],
)
def test_a_statement_of_the_shell_ends_with_a_semicolon(typed: str, whole: bool) -> None:
    assert is_whole(typed) is whole


def test_columns_of_objects() -> None:
    found = json_columns(
        [
            b'{"id": 1, "price": 2, "ok": true, "tags": ["a"], "at": {"x": 1}, "odd": 1}',
            b'{"id": null, "price": 2.5, "tags": [], "at": {"y": "z"}, "odd": "one", "none": null}',
            b'{"ID": 12345678901234567890}',
        ]
    )
    assert found == [
        Column("id", "id", "BIGINT"),
        Column("price", "price", "DOUBLE"),
        Column("ok", "ok", "BOOLEAN"),
        Column("tags", "tags", "VARCHAR[]"),
        Column("at", "at", 'STRUCT("x" BIGINT, "y" VARCHAR)'),
        Column("odd", "odd", "JSON"),
        Column("none", "none", "JSON"),
        Column("ID_2", "ID", "DOUBLE"),
    ]


def test_what_is_not_mostly_objects_has_no_columns() -> None:
    assert json_columns([b"[1, 2]", b'"text"', b"7"]) is None
    assert json_columns([b'{"a": 1}', b"broken {"]) is None
    assert json_columns([b'{"a": 1}'] * 19 + [b"broken {"]) == [Column("a", "a", "BIGINT")]
    assert json_columns([]) is None
    assert unique(["a", "A", "a_2"]) == ["a", "A_2", "a_2_2"]


def _time(us: int) -> pa.Scalar:
    return pa.scalar(us, pa.timestamp("us", tz="UTC"))


def test_bounds_of_common_filters() -> None:
    offset, time, partition = (pc.field(name) for name in ("offset", "timestamp", "partition"))

    def bounds(expression: pc.Expression, at: int = 0) -> Bounds | None:
        return Pruner(expression, SCHEMA).bounds(at)

    assert bounds((offset >= 5) & (offset < 9)) == Bounds(Interval(5, 8))
    assert bounds(offset.isin(pa.array([7, 20]))) == Bounds(Interval(7, 20))
    assert bounds((time > _time(10)) & (time <= _time(20))) == Bounds(times_us=Interval(11, 20))
    assert bounds(partition == pa.scalar(1, pa.int32()), 0) is None
    assert bounds(partition == pa.scalar(1, pa.int32()), 1) == Bounds()
    nothing = bounds((offset > 9) & (offset < 5))
    assert nothing is not None and nothing.offsets.most - nothing.offsets.least <= 1
    either = ((partition == 0) & (offset < 5)) | ((partition == 1) & (offset >= 10))
    assert bounds(either, 0) == Bounds(Interval(most=4))
    assert bounds(either, 1) == Bounds(Interval(least=10))
    assert bounds(pc.field("value") == "offset") == Bounds()


def test_many_partitions_are_looked_into_together() -> None:
    offset, partition = pc.field("offset"), pc.field("partition")
    pruner = Pruner((partition < 900) & (offset >= 7) & (offset < 9), SCHEMA)
    found = [pruner.bounds(at) for at in range(1000)]
    assert found == [Bounds(Interval(7, 8))] * 900 + [None] * 100


def test_bounds_never_leave_out_a_row_that_matches() -> None:
    chance = random.Random(4)
    rows = pa.table(
        {
            "partition": pa.array([at % 3 for at in range(300)], pa.int32()),
            "offset": pa.array(range(300), pa.int64()),
            "timestamp": pa.array([at * 7 % 100 for at in range(300)], SCHEMA.field(2).type),
            "value": pa.array([str(at % 5) for at in range(300)]),
        }
    )

    def some(depth: int) -> pc.Expression:
        if depth and chance.random() < 0.6:
            left, right = some(depth - 1), some(depth - 1)
            return left & right if chance.random() < 0.5 else left | right
        name = chance.choice(SCHEMA.names)
        field, at = pc.field(name), chance.randrange(100)
        if name == "value":
            return field == str(at % 7)
        scalar = pa.scalar(at % 4 if name == "partition" else at, SCHEMA.field(name).type)
        return chance.choice([field < scalar, field >= scalar, field == scalar, ~(field <= scalar)])

    for _ in range(60):
        expression = some(3)
        kept = rows.filter(expression).to_pylist()
        pruner = Pruner(expression, SCHEMA)
        for partition in range(3):
            found = pruner.bounds(partition)
            for row in [row for row in kept if row["partition"] == partition]:
                assert found is not None, str(expression)
                assert row["offset"] in found.offsets, str(expression)
                at_us = pa.scalar(row["timestamp"]).cast(pa.int64()).as_py()
                assert at_us in found.times_us, str(expression)


class _Log:
    """One partition of records that have these timestamps in ms."""

    cluster = None

    def __init__(self, stamps: list[int]) -> None:
        self.stamps = stamps

    def topics(self, names: Collection[str] | None) -> list[TopicFound]:
        return [TopicFound("t", "", [0])]

    def earliest(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def latest(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, len(self.stamps))

    def at_timestamps(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return {
            at: next((n for n, stamp in enumerate(self.stamps) if stamp >= wanted), None)
            for at, wanted in timestamps_ms.items()
        }

    def bytes_of(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {}

    def look(self, piece: Range) -> tuple[int, int] | None:
        here = self.stamps[piece.start : piece.end]
        return (min(here), max(here)) if here else None

    def close(self) -> None: ...


def _planned(stamps: list[int], first_ms: int, last_ms: int, disorder_ms: int | None = 10) -> Range:
    log, told = _Log(stamps), list[str]()
    bounds = Bounds(times_us=Interval(first_ms * 1000, last_ms * 1000))
    whole = ends_of(log, "t").whole("t")
    (found,) = pruned(log, whole, lambda _: bounds, disorder_ms, log.look, told.append)
    assert found.times_ms in (None, (first_ms, last_ms))
    return found.piece


def test_times_in_order_are_cut_at_both_ends() -> None:
    count = 5 * FEW_OFFSETS
    assert _planned(list(range(count)), 100, 199) == Range("t", 0, 100, 210)
    assert _planned(list(range(count)), 100, 199, None) == Range("t", 0, 100, count)


def test_where_little_is_left_it_is_read() -> None:
    assert _planned(list(range(1000)), 100, 199) == Range("t", 0, 100, 1000)


def test_times_that_are_out_of_order_further_on_are_noticed() -> None:
    ordered = list(range(5 * FEW_OFFSETS))
    late = ordered[:60_000] + [150] * 20_000 + ordered[80_000:]
    assert _planned(late, 100, 199) == Range("t", 0, 100, len(late))
