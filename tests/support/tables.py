"""What a table holds, read by libraries that had no part in writing it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

FORMATS = ("delta", "iceberg", "parquet")


def rows(format_: str, folder: Path) -> list[dict[str, Any]]:
    """Delta by DataFusion of `deltalake`, Iceberg by `pyiceberg`, Parquet by the folder alone."""
    found: list[dict[str, Any]] = read(format_, folder).to_pylist()
    return found


def read(format_: str, folder: Path) -> "pa.Table":
    if format_ == "delta":
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(str(folder))
        return pa.table(QueryBuilder().register("t", table).execute("select * from t"))
    if format_ == "iceberg":
        return iceberg(folder).scan().to_arrow()
    return ds.dataset(folder, partitioning="hive", format="parquet").to_table()


def iceberg(folder: Path) -> Any:  # noqa: ANN401 - pyiceberg is imported late
    from pyiceberg.catalog import load_catalog

    settings: Mapping[str, str] = {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}"}
    return load_catalog("runnel", **settings).load_table(("runnel", folder.name))


def data_files(folder: Path) -> set[str]:
    """Every Parquet file below a table's folder, committed or not."""
    return {path.name for path in folder.rglob("part-*.parquet")}


def committed_files(format_: str, folder: Path) -> set[str]:
    if format_ == "delta":
        from deltalake import DeltaTable

        paths = DeltaTable(str(folder)).file_uris()
    elif format_ == "iceberg":
        paths = [task.file.file_path for task in iceberg(folder).scan().plan_files()]
    else:
        from runnel.spark.lake.sink_log import SinkLog

        paths = SinkLog(folder / "_spark_metadata").paths()
    return {Path(path).name for path in paths}


def ledgers(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "_runnel").glob("*@*"))
