"""SQL over topics: DuckDB on top of the same Arrow decoder that Spark's source has.

    import runnel

    runnel.sql("select count(*) from orders", bootstrap="localhost:9092").pandas()

A topic is a relation by its name. `pip install 'runnel[sql]'` brings what it needs; importing this
package imports none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.query.connection import Connection, sql
    from runnel.query.errors import QueryError
    from runnel.query.result import Result

_MODULES = {
    "Connection": "connection",
    "QueryError": "errors",
    "Result": "result",
    "sql": "connection",
}

__all__ = ["Connection", "QueryError", "Result", "sql"]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
