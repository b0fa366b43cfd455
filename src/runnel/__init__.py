"""A message broker that every Kafka client can use unchanged."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401  # typed where it is: runnel.query
    """`runnel.sql(...)`, for who has `runnel[sql]`; nobody else imports what is behind it."""
    if name != "sql":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("runnel.query").sql
