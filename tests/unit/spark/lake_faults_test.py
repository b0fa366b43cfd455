"""What cannot be reached or written to is told in words that name the option."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.sink import RunnelLake

SCHEMA = StructType([StructField("id", LongType())])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"catalog.uri": "sqlite:////nowhere/at/all.db"},
            r"(?s)catalog.*catalog\.\*\s+options: uri",
        ),
        ({"catalog.type": "nonsense"}, r"(?s)catalog.*catalog\.\*\s+options: type"),
    ],
)
def test_a_catalog_that_is_not_there(more: dict[str, str], message: str) -> None:
    options = {"table": "raw.orders", "tableFormat": "iceberg", **more}
    with pytest.raises(TableError, match=message):
        RunnelLake(options).writer(SCHEMA, False)


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    """The kernel refuses to let a file grow: a limit of the process stands for the full disk."""
    program = """
        import pyarrow as pa
        from pyspark.sql.types import LongType, StructField, StructType
        from runnel.spark.lake.sink import RunnelLake

        schema = StructType([StructField("id", LongType())])
        lake = RunnelLake({"table": "t", "compression": "none"}).writer(schema, False)
        lake.write(iter([pa.record_batch({"id": pa.array(range(100_000), pa.int64())})]))
    """

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TableError: cannot write below" in done.stderr, done.stderr
    assert "no row is lost" in done.stderr
    assert not list((tmp_path / "t").rglob("part-*"))
