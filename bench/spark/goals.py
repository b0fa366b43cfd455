"""What Runnel's source must reach beside Spark's connector, in one run on the same data."""

from bench.goals import By, Goal, at_least, at_most
from bench.spark.log_cells import INDEXING, SEARCH
from bench.spark.pipeline_cells import FILES, FRESHNESS
from bench.spark.sql_cells import SQL_COUNT, SQL_HOUR_MORE

SPARK_GOALS: tuple[Goal, ...] = (
    at_least("scan through the broker, 100 B", 1.5, 2.5),
    at_least("scan through the broker, 1 KiB", 1.2, 1.5),
    at_least("scan of local segments, 100 B", 3.0, 4.0),
    at_least("scan of local segments, 1 KiB", 1.5, 1.9),
    at_least("two columns of seven", 2.0, 4.0),
    at_most("one hour of 24, against filter()", 1 / 10),
    at_most("one hour of 24, against endingTimestamp", 1 / 1.2),
    at_least("decode JSON to columns", 1.2, 2.0),
    at_least("topic to Delta table", 1.5, 3.0),
    at_most("micro-batch latency p50", 1.2, 1.0),
    # Linear: ten times the partitions cost at most a little more than ten times as much.
    at_most(
        "driver's work per batch, 1,000 partitions",
        12.0,
        by=By.ITSELF,
        base="driver's work per batch, 100 partitions",
    ),
    at_most("ListOffsets requests per batch, 1,000 partitions", 1.0, by=By.AMOUNT),
    at_most(FRESHNESS, 5.0, by=By.AMOUNT),
    at_most(FILES, 50.0, by=By.AMOUNT),
    at_most(SEARCH, 1.0, by=By.AMOUNT),
    Goal(INDEXING, True, 50_000, 100_000, By.AMOUNT),
    at_most(SQL_COUNT, 3.0, by=By.AMOUNT),
    at_most(SQL_HOUR_MORE, 5.0, by=By.AMOUNT),
)
