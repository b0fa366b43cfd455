"""Spark reads and writes topics through PySpark: sources and sinks in Python, without jars.

    from runnel.spark import session

    spark = session("orders")
    rows = (
        spark.read.format("runnel")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "orders")
        .load()
    )

`pip install 'runnel[spark]'` brings all of it. Importing this package imports nothing else: every
Python worker of Spark does it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.spark.java import SparkSetupError, find_java
    from runnel.spark.lag import LagListener
    from runnel.spark.lake.ingesting import ingest
    from runnel.spark.sessions import session

_MODULES = {
    "LagListener": "lag",
    "SparkSetupError": "java",
    "find_java": "java",
    "ingest": "lake.ingesting",
    "session": "sessions",
}

__all__ = ["LagListener", "SparkSetupError", "find_java", "ingest", "session"]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
