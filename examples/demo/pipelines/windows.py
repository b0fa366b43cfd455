"""The second pipeline's own step, a function on a DataFrame."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def clicks_by_city(clicks: DataFrame) -> DataFrame:
    counted = (
        clicks.withWatermark("timestamp", "1 minute")
        .groupBy(F.window("timestamp", "10 minutes"), "city")
        .agg(
            F.count("*").alias("clicks"),
            F.approx_count_distinct("customer").alias("visitors"),
            F.count_if(F.col("page") == "checkout").alias("checkouts"),
        )
    )
    return counted.select(
        F.col("city").alias("key"),
        F.to_json(
            F.struct(
                F.unix_millis("window.start").alias("from_ms"),
                "city",
                "clicks",
                "visitors",
                "checkouts",
            )
        ).alias("value"),
    )
