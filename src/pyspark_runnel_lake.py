"""Found by PySpark by its name, at the first use of `format("runnel-lake")`."""

from runnel.spark.lake.sink import RunnelLake as DefaultSource

__all__ = ["DefaultSource"]
