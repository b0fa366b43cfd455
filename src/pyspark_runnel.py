"""Makes `format("runnel")` known: PySpark imports every top-level module named `pyspark_*`."""

from runnel.spark.reads.source import RunnelDataSource as DefaultSource

__all__ = ["DefaultSource"]
