"""An Arrow table into a lake table from this process, without Spark: one commit, or nothing.

For work that makes few rows, for which no JVM is worth starting. Batches are numbered as those of a
query are: what a killed process has left behind is swept by the next write of the same name.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from runnel.spark.lake import lake_options, table_schema
from runnel.spark.lake.lake_table import Query, open_table
from runnel.spark.lake.part_files import NO_STREAM

if TYPE_CHECKING:
    import pyarrow as pa


def append(rows: "pa.Table", options: Mapping[str, str], writer: str) -> int:
    """`options` are those of `format("runnel-lake")`. The number of the batch that it became.

    Raises TableError.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from runnel.spark.lake.sink import BatchLakeWriter

    named = {**options, "queryId": writer}
    last = open_table(lake_options.parse(named)).last_batch(Query(writer, NO_STREAM))
    number = max(0, last + 1)
    parsed = lake_options.parse({**named, "batchId": str(number)})
    plain = rows.cast(table_schema.plain_schema(rows.schema))
    sink = BatchLakeWriter(parsed, from_arrow_schema(plain.schema), overwrite=False)
    sink.commit([sink.write(iter(plain.to_batches()))])
    return number
