"""What tests of Spark's sinks without Spark need: a schema from text, and what a topic holds."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
)

from runnel.client import admin
from runnel.client.cluster import Cluster
from runnel.client.reading import Reader
from runnel.native.columns import Record
from runnel.testing import RunnelBroker

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "headers": ArrayType(StructType().add("key", StringType()).add("value", BinaryType())),
}


def schema(text: str) -> StructType:
    """`key binary, value string`; pyspark's own parser is in the JVM."""
    found = StructType()
    for column in text.split(", "):
        name, kind = column.split()
        found.add(name, TYPES[kind])
    return found


def options_of(broker: RunnelBroker, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, **more}


def rows(broker: RunnelBroker, topic: str) -> dict[int, list[Record]]:
    """Of each partition, what is committed; nothing from the first open transaction on."""
    with Cluster([("127.0.0.1", broker.port)]) as cluster:
        count = len(cluster.topic(topic).partitions)
        wanted = dict.fromkeys(range(count), admin.LATEST)
        ends = admin.list_offsets(cluster, topic, wanted, committed=True)
        reader = Reader(cluster, topic, dict.fromkeys(range(count), 0), ends, committed=True)
        found: dict[int, list[Record]] = {at: [] for at in range(count)}
        for page in reader.pages():
            for row in page:
                found[row.partition].append(row.record)
    return found
