"""The name of an intake: by it a batch that is repeated is known."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from runnel.spark.lake import lake_options, table_schema
from runnel.spark.lake.attempts import Attempt
from runnel.spark.lake.ingesting import name_of
from runnel.spark.lake.lake_table import Query, open_table
from runnel.spark.lake.part_files import PartFiles, write_all
from tests.support import tables

ROWS = table_schema.of_rows(StructType([StructField("id", LongType())]))


def of_earlier_versions(topic: str, table: str) -> str:
    where = hashlib.sha256(f"{topic} {table}".encode()).hexdigest()[:8]
    return f"ingest-{topic.split(',')[0]}-{where}"


def take_in(of_lake: dict[str, str], name: str, batch: int = 0) -> None:
    table = open_table(lake_options.parse(of_lake))
    query = Query(name, "a checkpoint")
    files = PartFiles(table.destination(ROWS), Attempt.new(name, batch), query.checkpoint, 0)
    rows = pa.record_batch({"id": pa.array([1], pa.int64())})
    table.publish(ROWS, write_all(files, [rows]), query, batch, overwrite=False)


def test_the_same_intake_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    whole = name_of("a,b", {"table": f"{tmp_path}/t"})
    for topics in ("a,b", "b,a", "b, a"):
        for table in ("./t", f"{tmp_path}/t/", f"file:{tmp_path}/t", f"{tmp_path}/link/t"):
            assert name_of(topics, {"table": table}) == whole
    assert name_of("a", {"table": f"{tmp_path}/t"}) != whole
    assert name_of("a,b", {"table": f"{tmp_path}/u"}) != whole


def test_as_it_should_be_written_it_has_the_name_of_before(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    assert name_of("a,b", {"table": table}) == of_earlier_versions("a,b", table)
    of_lake = {"table": "raw.orders", "catalog.uri": "sqlite://"}
    assert name_of("a", of_lake) == of_earlier_versions("a", "raw.orders")


@pytest.mark.parametrize("table_format", tables.FORMATS)
def test_a_table_that_knows_the_name_of_before_keeps_it(tmp_path: Path, table_format: str) -> None:
    spelled = f"{tmp_path}/t/"
    of_lake = {"table": spelled, "tableFormat": table_format, "mode": "direct"}
    before = of_earlier_versions("b,a", spelled)
    take_in(of_lake, before)
    assert name_of("b,a", of_lake) == before
    now = name_of("a,b", {**of_lake, "table": f"{tmp_path}/t"})
    assert now != before
    take_in(of_lake, now, batch=1)
    assert name_of("b,a", of_lake) == now, "what was written last counts"


def test_a_folder_that_is_no_table_is_told_when_the_query_starts(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    assert name_of("a", {"table": f"{tmp_path}/"}) == name_of("a", {"table": str(tmp_path)})
