"""Tables of a lake beside topics: Delta, Iceberg, Parquet; values that a registry knows."""

import io
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from deltalake import write_deltalake
from fastavro import parse_schema, schemaless_writer
from pyiceberg.catalog import load_catalog

from runnel.query import Connection, QueryError
from runnel.testing import RunnelBroker
from tests.support.registry import registry_of

CUSTOMERS = pa.table({"user": ["u0", "u1", "u2"], "city": ["Ghent", "Porto", "Lund"]})
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "offset", "type": ["null", "string"], "default": None},
        {"name": "paid_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": "double"}},
    ],
}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as running:
        for name in ("orders", "payments", "notes"):
            running.create_topic(name)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        for number in range(9):
            order = {"id": number, "user": f"u{number % 3}"}
            producer.produce("orders", json.dumps(order))
            file = io.BytesIO()
            payment = {
                "id": number,
                "offset": "x",
                "paid_at": number * 1000,
                "lines": [0.5] * number,
            }
            schemaless_writer(file, parse_schema(AVRO), payment)
            producer.produce("payments", struct.pack(">bi", 0, 7) + file.getvalue())
            producer.produce("notes", struct.pack(">bi", 0, 8) + b'{"n": %d}' % number)
        producer.produce("payments", struct.pack(">bi", 0, 7) + b"\xff")
        assert producer.flush(30) == 0
        yield running


def _delta(folder: Path) -> None:
    write_deltalake(str(folder), CUSTOMERS.slice(0, 2))
    write_deltalake(str(folder), CUSTOMERS.slice(2), mode="append")


def _iceberg(folder: Path) -> None:
    folder.mkdir(parents=True)
    catalog = load_catalog(
        "elsewhere", type="sql", uri=f"sqlite:///{folder.parent}/c.db", warehouse=str(folder.parent)
    )
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.customers", CUSTOMERS.schema, location=str(folder))
    table.append(CUSTOMERS.slice(0, 2))
    table.append(CUSTOMERS.slice(2))
    catalog.close()


def _parquet(folder: Path) -> None:
    folder.mkdir(parents=True)
    pq.write_table(CUSTOMERS.slice(0, 2), folder / "a.parquet")
    pq.write_table(CUSTOMERS.slice(2), folder / "b.parquet")


@pytest.mark.parametrize("make", [_delta, _iceberg, _parquet])
def test_topics_are_joined_with_tables(
    broker: RunnelBroker, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "lake" / "customers")
    lakes = {"customers": str(tmp_path / "lake" / "customers")}
    with Connection(broker.bootstrap_servers, lakes=lakes) as connection:
        joined = connection.sql(
            "select city, count(*) from orders join customers using (user)"
            " where city <> 'Lund' group by 1 order by 1"
        )
        assert joined.fetchall() == [("Ghent", 3), ("Porto", 3)]
        assert connection.sql("select count(*) from customers").fetchone() == (3,)
    with Connection(broker.bootstrap_servers) as connection:
        by_path = connection.sql(f"select user from '{lakes['customers']}' where city = 'Lund'")
        assert by_path.fetchall() == [("u2",)]


def test_a_table_is_as_it_was_last_committed(broker: RunnelBroker, tmp_path: Path) -> None:
    _delta(tmp_path / "customers")
    with Connection(
        broker.bootstrap_servers, lakes={"c": str(tmp_path / "customers")}
    ) as connection:
        assert connection.sql("select count(*) from c").fetchone() == (3,)
        write_deltalake(str(tmp_path / "customers"), CUSTOMERS, mode="append")
        assert connection.sql("select count(*) from c").fetchone() == (6,)


def test_avro_of_a_registry_has_typed_columns(broker: RunnelBroker) -> None:
    with (
        registry_of({7: AVRO}, {"payments-value": 7}) as (url, _),
        Connection(broker.bootstrap_servers, registry=url) as connection,
    ):
        table = connection.sql('select * from payments order by "_offset"').arrow()
        assert table.schema.names[:5] == ["id", "offset", "paid_at", "lines", "key"]
        assert table.column("id").to_pylist() == [*range(9), None]
        assert connection.sql("select sum(list_sum(lines)) from payments").fetchone() == (18.0,)
        late = connection.sql(
            "select count(*) from payments where paid_at >= '1970-01-01 00:00:05'"
        )
        assert late.fetchone() == (4,)


def test_values_with_the_frame_of_a_registry_and_none_named(broker: RunnelBroker) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        assert connection.sql("select sum(n) from notes").fetchone() == (36,)
        result = connection.sql("select * from payments limit 1")
        assert any("--registry" in note for note in result.notes)


def test_a_registry_that_does_not_answer(broker: RunnelBroker) -> None:
    with (
        Connection(broker.bootstrap_servers, registry="http://127.0.0.1:9") as connection,
        pytest.raises(QueryError, match="does not answer"),
    ):
        connection.sql("select * from payments")
