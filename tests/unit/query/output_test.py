"""What `runnel sql` writes: to pipes and links, of joins, spans of time, numbers that vary."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from runnel.cli.sql_output import text_of
from runnel.query import Connection, QueryError
from runnel.testing import RunnelBroker
from tests.support.command import Runnel, command

SAMPLED = 256  # records at either end of a partition, by which columns are judged


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as running:
        running.create_topic("orders")
        running.create_topic("shop.eu.lines")
        running.create_topic("odd")
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        odd = ["1.5", "2.0", "1e1", '"7"', "12345678901234567", "-3"]
        for written in [*["0"] * SAMPLED, *odd, *["0"] * SAMPLED]:
            producer.produce("orders", f'{{"n": {written}}}')
        producer.produce("shop.eu.lines", b"line")
        producer.produce("odd", rb'{"\ud800": 1, "in": {"\ud800": 2}, "id": 3}')
        producer.produce("odd", rb'{"a\u0000b": 4, "in": {"c": 5}, "d\"e": 6, "id": 7}')
        assert producer.flush(30) == 0
        yield running


@pytest.fixture
def sql(broker: RunnelBroker) -> Runnel:
    return Runnel(broker.bootstrap_servers)


def test_a_number_that_is_not_whole_is_null_and_not_another_number(sql: Runnel) -> None:
    text = f"select n from orders where offset between {SAMPLED} and {SAMPLED + 5} order by offset"
    found = [json.loads(line)["n"] for line in sql("sql", text, "--json").out.splitlines()]
    assert found == [None, 2, 10, 7, 12345678901234567, -3]


def test_columns_of_one_name_are_all_written(sql: Runnel, tmp_path: Path) -> None:
    text = "select 1 as id, 2 as ID, 3 as id_2"
    assert sql("sql", text, "--json").json == {"id": 1, "ID_2": 2, "id_2_2": 3}
    sql("sql", text, "-o", str(tmp_path / "t.parquet"))
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [{"id": 1, "ID_2": 2, "id_2_2": 3}]
    assert sql("sql", text, "--format", "csv").out == "id,ID,id_2\n1,2,3\n"


def test_a_table_without_rows_has_its_types(sql: Runnel, tmp_path: Path) -> None:
    sql("sql", "select n, topic from orders where false", "-o", str(tmp_path / "t.parquet"))
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert [str(kind) for kind in schema.types] == ["int64", "string"]
    assert sql("sql", "select n, topic from orders where false").out == "n  topic\n"


def test_spans_of_time_are_written_as_duckdb_does() -> None:
    for span in ("0s", "76.777488s", "-25h", "1 day -1h", "-13 months", "14 months 3 days 1s"):
        with Connection(path="/nowhere") as connection:
            rows = connection.sql(f"select interval '{span}', (interval '{span}')::varchar")
            ((found, wanted),) = rows.fetchall()
        assert text_of(found) == wanted, span


def test_what_is_no_file_is_written_to_and_not_replaced(sql: Runnel, tmp_path: Path) -> None:
    pipe, link, real = tmp_path / "pipe", tmp_path / "link.csv", tmp_path / "real.csv"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    sql("sql", "select 1 as a", "-o", str(pipe))
    reader.join(30)
    assert heard == ["a\n1\n"] and pipe.is_fifo()
    link.symlink_to(real)
    sql("sql", "select 2 as a", "-o", str(link))
    assert link.is_symlink() and real.read_text() == "a\n2\n"


@pytest.mark.parametrize("how", ["csv", "json", "parquet"])
def test_a_reader_that_has_enough_is_no_mishap(broker: RunnelBroker, how: str) -> None:
    text = "select * from range(1000000)"
    arguments = command("sql", text, "-f", how, "-b", broker.bootstrap_servers)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""


def test_names_of_many_parts_are_told_to_be_quoted(broker: RunnelBroker) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        with pytest.raises(QueryError, match=r'in double quotes: "shop\.eu\.lines"'):
            connection.sql("select * from shop.eu.lines")
        assert connection.sql('select count(*) from "shop.eu.lines"').fetchall() == [(1,)]


def test_a_lake_is_found_whatever_its_case(sql: Runnel, tmp_path: Path) -> None:
    sql("sql", "select 5 as n", "-o", str(tmp_path / "t.parquet"))
    asked = ("select n from MyTable", "--lake", f"mytable={tmp_path / 't.parquet'}", "--json")
    assert sql("sql", *asked).json == {"n": 5}


def test_a_folder_that_is_no_table_is_not_taken_for_a_topic(sql: Runnel, tmp_path: Path) -> None:
    found = sql.inside("sql", f'select * from "{tmp_path}/nowhere"')
    assert found.status == 2 and "nowhere is not there; name the folder of a Delta" in found.err


def test_names_that_sql_cannot_have_hide_no_others(sql: Runnel) -> None:
    found = sql("sql", "select * exclude (timestamp) from odd where offset = 1", "--json").json
    assert (found["id"], found['d"e'], found["in"]) == (7, 6, '{"c":5}')
