"""`runnel sql` as people use it: columns of JSON, formats, errors with a place, the shell."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

import runnel
from runnel.testing import RunnelBroker
from tests.support.command import Runnel, command
from tests.support.terminal import Terminal

ORDERS = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as running:
        running.create_topic("orders", partitions=2)
        running.create_topic("web-clicks")
        running.create_topic("shop.lines")
        running.create_topic("empty")
        running.create_topic("bytes")
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        for number in range(ORDERS):
            order = {
                "id": number,
                "user": f"u{number % 3}",
                "amount": number / 2,
                "tags": ["a", "b"][: number % 3],
                "key": "of the order",
            }
            producer.produce(
                "orders", json.dumps(order), f"k{number}", number % 2, headers=[("trace", b"t1")]
            )
        producer.produce("orders", b"{broken", "bad", 0)
        producer.produce("orders", None, "gone", 1)
        producer.produce("web-clicks", b"hello")
        producer.produce("shop.lines", b"line")
        producer.produce("bytes", b"\xff\x00\x01")
        assert producer.flush(30) == 0
        yield running


@pytest.fixture
def sql(broker: RunnelBroker) -> Runnel:
    return Runnel(broker.bootstrap_servers)


def test_what_a_user_types_first(sql: Runnel) -> None:
    assert sql("sql", "select count(*) as n from orders").out == " n\n32\n"
    done = sql(
        "sql",
        "select user, sum(amount) as s from orders where id is not null group by 1 order by 1",
    )
    assert done.out.split() == ["user", "s", "u0", "67.5", "u1", "72.5", "u2", "77.5"]
    assert "told from 31 of its records" in done.err
    assert len(sql("sql", "select * from orders limit 5").out.splitlines()) == 6


def test_fields_are_columns_and_so_is_what_kafka_has(sql: Runnel) -> None:
    text = (
        "select id, tags, key, _key, offset, header(headers, 'trace') as t from orders where id = 2"
    )
    assert sql("sql", text, "--json").json == {
        "id": 2,
        "tags": ["a", "b"],
        "key": "of the order",
        "_key": "k2",
        "offset": 1,
        "t": "t1",
    }


def test_sums_are_numbers(sql: Runnel) -> None:
    assert sql("sql", "select sum(id) as s from orders", "--json").json == {"s": 435}


def test_bad_values_are_null_and_raw_has_them(sql: Runnel) -> None:
    rows = sql(
        "sql", "select id, user, amount, tags from orders where _key in ('bad', 'gone')", "--json"
    )
    assert rows.json_lines == [{"id": None, "user": None, "amount": None, "tags": None}] * 2
    raw = sql(
        "sql", "select value from raw.orders where key in ('bad', 'gone') order by 1", "--json"
    )
    assert raw.json_lines == [{"value": "{broken"}, {"value": None}]


def test_columns_that_the_user_names(sql: Runnel) -> None:
    done = sql(
        "sql", "select sum(amount) s, typeof(any_value(id)) t from orders", "--json",
        "--schema", "orders=id INTEGER, amount DECIMAL(10,2)",
    )  # fmt: skip
    assert done.json == {"s": "217.50", "t": "INTEGER"} and "told from" not in done.err
    bad = sql.inside("sql", "select 1", "--schema", "orders=id NOTHING")
    assert bad.status == 2 and "is no list of columns" in bad.err


def test_names_of_topics(sql: Runnel) -> None:
    assert sql("sql", 'select value from "web-clicks"').out == "value\nhello\n"
    assert sql("sql", "select value from shop.lines").out == "value\nline\n"
    assert sql("sql", 'select value from "shop.lines"').out == "value\nline\n"
    assert sql("sql", "select count(*) n from ORDERS").out == " n\n32\n"
    assert sql("sql", "select * from empty").out.split()[0] == "key"
    assert sql("sql", "select octet_length(value) n from bytes").out == "n\n3\n"


def test_mistakes_are_told_with_their_place(sql: Runnel) -> None:
    unknown = sql.inside("sql", "select * from ordres")
    assert unknown.status == 2 and "did you mean orders?" in unknown.err
    quotes = sql.inside("sql", "select * from web-clicks")
    assert quotes.status == 2 and 'double quotes: "web-clicks"' in quotes.err
    column = sql.inside("sql", "select amuont from orders")
    assert column.status == 2 and '"amount"' in column.err and "^^^" in column.err
    option = sql.inside("sql", "select 1", "--lake", "nothing")
    assert option.status == 2 and option.err.count("\n") == 1
    folder = sql.inside("sql", "from t", "--lake", "t=/nowhere")
    assert folder.status == 2 and "/nowhere is not there" in folder.err
    path = sql.inside("sql", "from orders", "--path", "/nowhere")
    assert path.status == 1 and "--path /nowhere cannot be read" in path.err


def test_every_format(sql: Runnel, tmp_path: Path) -> None:
    text = "select id, user, tags, timestamp from orders where id < 2 order by id"
    lines = sql("sql", text, "--format", "csv").out.splitlines()
    assert lines[0] == "id,user,tags,timestamp" and lines[1].startswith("0,u0,[],20")
    assert lines[2].startswith('1,u1,"[""a""]",')
    target = tmp_path / "orders.parquet"
    sql("sql", text, "-o", str(target))
    assert pq.read_table(target).column("id").to_pylist() == [0, 1]
    again = sql("sql", f"select count(*) n from '{target}'")
    assert again.out == "n\n2\n"
    limited = sql("sql", "select id from orders", "--limit-rows", "3")
    assert len(limited.out.splitlines()) == 4 and "--limit-rows 0 shows all" in limited.err
    assert sql.inside("sql", text, "--format", "xml").status == 2


def test_stats_tell_what_was_read(sql: Runnel) -> None:
    done = sql("sql", "select count(*) from orders", "--stats")
    assert "1 row in" in done.err and "read of" in done.err


def test_the_shell(sql: Runnel) -> None:
    typed = """\
.tables
.schema shop.lines
.timing on
select count(*) as n
  from orders;
select nope from orders;
create view users as select distinct user from orders where user is not null;
.mode csv
select * from users order by 1;
.mode odd
.nothing
select 'last' as word"""
    done = sql.inside("sql", stdin=typed)
    assert done.status == 2, "scripts see that one of them failed"
    assert "web-clicks  topic" in done.out and "timestamp_type  VARCHAR" in done.out
    assert " n\n32\n" in done.out and "user\nu0\nu1\nu2\n" in done.out
    assert done.out.endswith("word\nlast\n")
    assert "1 row in" in done.err and '"nope" not found' in done.err
    assert "choose table, csv, json" in done.err and "there is no .nothing" in done.err
    assert sql.inside("sql", "--path", "/nowhere", stdin="from orders").status == 1
    assert sql("sql", stdin="select 1 as one;").out == "one\n  1\n"
    refused = sql.inside("sql", "-o", "/nowhere/rows.csv", stdin="select 1;")
    assert refused.status == 2 and "--output takes the rows of one statement" in refused.err


def test_in_python(broker: RunnelBroker) -> None:
    text = "select user, count(*) as n from orders where id < ? group by 1 order by 1"
    servers = broker.bootstrap_servers
    assert runnel.sql(text, bootstrap=servers, parameters=[3]).fetchall() == [
        ("u0", 1),
        ("u1", 1),
        ("u2", 1),
    ]
    assert runnel.sql(text, bootstrap=servers, parameters=[3]).arrow().num_rows == 3
    (total,) = runnel.sql("select sum(id) from orders", bootstrap=servers).fetchone()
    assert total == 435 and type(total) is int
    summed = runnel.sql("select sum(id) as s from orders", bootstrap=servers).arrow()
    assert str(summed.schema.field("s").type) == "int64"
    frame = runnel.sql(text, bootstrap=servers, parameters=[6]).pandas()
    assert list(frame["n"]) == [2, 2, 2]
    assert [row[0] for row in runnel.sql("select id from orders limit 2", bootstrap=servers)] == [
        0,
        2,
    ]
    with pytest.raises(runnel.query.QueryError, match="there is no topic"):
        runnel.sql("select * from nowhere", bootstrap=servers)


def test_one_result_at_a_time(broker: RunnelBroker) -> None:
    with runnel.query.Connection(broker.bootstrap_servers) as connection:
        rows = iter(connection.sql("select * from range(100000)"))
        next(rows)
        with pytest.raises(runnel.query.QueryError, match="open another Connection"):
            connection.sql("select count(*) from orders").fetchall()
        rows.close()
        assert connection.sql("select count(*) from orders").fetchone() == (32,)


def test_new_records_are_seen_by_the_next_statement(broker: RunnelBroker) -> None:
    broker.create_topic("growing")
    with runnel.query.Connection(broker.bootstrap_servers) as connection:
        assert connection.sql("select count(*) from growing").fetchone() == (0,)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        producer.produce("growing", b'{"a": 5}')
        assert producer.flush(30) == 0
        assert connection.sql("select count(*) from growing").fetchone() == (1,)
        assert connection.sql("select sum(a) from growing").fetchone() == (5,)


def test_words_of_sql_that_are_columns(sql: Runnel) -> None:
    done = sql.inside("sql", "select group, count(*) from orders")
    assert done.status == 2 and 'in double quotes: "group"' in done.err


def test_ctrl_c_ends_the_statement_and_not_the_shell(sql: Runnel, tmp_path: Path) -> None:
    environ = sql.environment({"XDG_STATE_HOME": str(tmp_path)})
    with Terminal(command("sql"), environ) as terminal:
        terminal.expect("runnel> ")
        terminal.press("select count(*)\nfrom orders\n;\n")
        terminal.expect("32")
        terminal.press("select sum(a.range * b.range) from range(10000000) a, range(1000000) b;\n")
        terminal.expect("b;")
        time.sleep(1)
        terminal.send_signal(signal.SIGINT)
        terminal.expect("ended")
        terminal.press("select 'still' || ' here' as words;\n")
        terminal.expect("still here")
        terminal.press("select 'x' || count(*) || 'x' as n from ord\t;\n")
        terminal.expect("x32x")
        terminal.press(".quit\n")
        assert terminal.wait() == 0
    assert "count(*)" in (tmp_path / "runnel" / "sql_history").read_text()


def test_pyspark_is_not_needed_and_duckdb_is(sql: Runnel, tmp_path: Path) -> None:
    def without(name: str) -> dict[str, str]:
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name={name!r})")
        return {"PYTHONPATH": f"{folder}:{sql.environment()['PYTHONPATH']}"}

    text = "select count(*) as n, max(amount) as most from orders"
    done = sql.process("sql", text, "--json", environ=without("pyspark"))
    assert done.json == {"n": 32, "most": 14.5}
    for name in ("duckdb", "pyarrow"):
        refused = sql.process("sql", text, environ=without(name))
        assert refused.status == 2
        needs = f"SQL over topics needs {name}: pip install 'runnel[sql]'"
        assert refused.err == f"runnel: {needs}\n"
