"""All cases that hold for Spark's Kafka connector and for Runnel's source alike."""

from tests.support import (
    spark_reading_cases,
    spark_refused_cases,
    spark_streaming_cases,
    spark_writing_cases,
)
from tests.support.spark_stage import Case

CASES: list[Case] = [
    *spark_reading_cases.CASES,
    *spark_streaming_cases.CASES,
    *spark_writing_cases.CASES,
    *spark_refused_cases.CASES,
]
