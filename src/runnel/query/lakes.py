"""Tables of a lake as relations: Delta, Iceberg and Parquet, told apart by what lies in the folder.

A table is opened anew for each statement that names it, so that it is as it was last committed.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runnel.query.errors import MissingExtraError, QueryError
from runnel.query.json_shape import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from pyiceberg.table import Table

DELTA_LOG, ICEBERG_METADATA, SINK_LOG = "_delta_log", "metadata", "_spark_metadata"
ICEBERG_CATALOG: Final = "catalog.db"  # beside a table that Runnel's own sink made
KINDS: Final = "a Delta, Iceberg or Parquet table"


def kind_of(folder: Path) -> str | None:
    if (folder / DELTA_LOG).is_dir():
        return "delta"
    if (folder / ICEBERG_CATALOG).is_file() or any(folder.glob(f"{ICEBERG_METADATA}/*.json")):
        return "iceberg"
    is_file = folder.is_file() and folder.suffix == ".parquet"
    if is_file or (folder / SINK_LOG).is_dir() or any(folder.rglob("*.parquet")):
        return "parquet"
    return None


def register(duck: "DuckDBPyConnection", name: str, path: str) -> None:
    """Make or renew the relation. Raises QueryError."""
    place = Path(path)
    kind = kind_of(place)
    try:
        if kind == "delta":
            duck.register(name, _delta(place))
        elif kind == "iceberg":
            duck.register(name, _iceberg(place))
        elif kind == "parquet":
            duck.execute(f"create or replace view {quoted(name)} as {_parquet(place)}")
        else:
            there = "is no table" if place.exists() else "is not there"
            option = "" if name == path else f"--lake {name}={path}: "
            raise QueryError(f"{option}{path} {there}; name the folder of {KINDS}")
    except ImportError as error:
        raise MissingExtraError(
            f"{name} is {kind}, which needs {error.name}: pip install 'runnel[sql]'"
        ) from None


def _delta(folder: Path) -> Any:  # noqa: ANN401  # a dataset of Arrow
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError
    from pyarrow import fs

    # Not deltalake's own: Arrow's threads may still hold it when Python ends, which then aborts.
    files = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    try:
        return DeltaTable(folder).to_pyarrow_dataset(filesystem=files)
    except DeltaError as error:
        raise QueryError(f"the Delta table {folder} cannot be read: {error}") from None


def _parquet(folder: Path) -> str:
    """Of a folder that Spark's file sink writes only the files that its log names count."""
    if (folder / SINK_LOG).is_dir():
        from runnel.spark.lake.sink_log import SinkLog

        files = SinkLog(folder / SINK_LOG).paths()
    else:
        files = [str(folder)] if folder.is_file() else [f"{folder}/**/*.parquet"]
    if not files:
        raise QueryError(f"the Parquet table {folder} has no rows yet")
    texts = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
    return f"select * from read_parquet([{texts}], union_by_name = true)"


def _iceberg(folder: Path) -> Any:  # noqa: ANN401  # a dataset of Arrow
    from runnel.query.iceberg_dataset import IcebergDataset

    return IcebergDataset(_iceberg_table(folder))


def _iceberg_table(folder: Path) -> "Table":
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.table import StaticTable

    if (folder / ICEBERG_CATALOG).is_file():
        from runnel.spark.lake.iceberg import CATALOG, NAMESPACE

        settings = {"type": "sql", "uri": f"sqlite:///{folder.resolve() / ICEBERG_CATALOG}"}
        try:
            return load_catalog(CATALOG, **settings).load_table((NAMESPACE, folder.name))
        except NoSuchTableError:
            raise QueryError(
                f"the Iceberg catalog in {folder} has no table {folder.name}"
            ) from None
    found = sorted((folder / ICEBERG_METADATA).glob("*.metadata.json"), key=_version)
    return StaticTable.from_metadata(str(found[-1]))


def _version(path: Path) -> tuple[int, str]:
    """`v3.metadata.json` and `00003-<uuid>.metadata.json` are both the third."""
    number = path.name.lstrip("v").split(".")[0].split("-")[0]
    return (int(number) if number.isdecimal() else -1), path.name


def schema_of(duck: "DuckDBPyConnection", name: str) -> "pa.Schema":
    return duck.sql(f"select * from {quoted(name)} limit 0").to_arrow_table().schema
