"""Where rows go: `to` as a writer of a stream, without trigger, checkpoint and query id."""

from typing import TYPE_CHECKING

from runnel.pipelines.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def output(spec: Spec, rows: "DataFrame") -> "DataStreamWriter":
    """To a table or a topic, each record exactly once."""
    if spec.to.topic:
        options = {
            "kafka.bootstrap.servers": spec.to.bootstrap,
            "topic": spec.to.topic,
            "exactlyOnce": "true",
        }
        writer = rows.writeStream.format("runnel")
    else:
        options = table_options(spec)
        writer = rows.writeStream.format("runnel-lake").outputMode(spec.to.mode)
    return writer.options(**options | dict(spec.to.options))


def table_options(spec: Spec) -> dict[str, str]:
    found = {"table": spec.to.table}
    if spec.to.format:
        found["tableFormat"] = spec.to.format
    if spec.to.partition_by:
        found["partitionBy"] = ",".join(spec.to.partition_by)
    return found
