"""`runnel sql` and Spark read the same topic to the same rows, compressed and transactional."""

from collections import Counter
from typing import TYPE_CHECKING

from runnel.query import Connection
from tests.spark.conftest import MakeTopic
from tests.support.mixed_log import MixedWriter
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_are_those_of_spark(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic("mixed")
    writer = MixedWriter(broker.bootstrap, topic, seed=5, keyed=False)
    writer.write(60)
    writer.leave_open()
    columns = "key, value, partition, offset, timestamp, headers"
    for isolation in ("read_committed", "read_uncommitted"):
        frame = (
            spark.read.format("runnel")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", topic)
            .option("includeHeaders", "true")
            .option("kafka.isolation.level", isolation)
            .load()
            .selectExpr(*columns.split(", "))
        )
        wanted = frame.toArrow()
        with Connection(
            broker.bootstrap, read_committed=isolation == "read_committed"
        ) as connection:
            found = connection.sql(f'select {columns} from raw."{topic}"').arrow()
        assert found.num_rows > 100
        assert Counter(map(str, _bytes(found.to_pylist()))) == Counter(
            map(str, _bytes(wanted.to_pylist()))
        )


def _bytes(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Keys are text to SQL, as all of them are UTF-8; times are of one zone, however named."""
    return [
        {
            name: cell.encode()
            if isinstance(cell, str)
            else int(cell.timestamp() * 1000)  # type: ignore[attr-defined]  # it is a datetime
            if name == "timestamp"
            else cell
            for name, cell in row.items()
        }
        for row in rows
    ]
