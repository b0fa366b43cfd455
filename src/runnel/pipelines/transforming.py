"""The user's own step: a query over `input`, or a function on a DataFrame."""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.pipelines.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TransformError(ValueError):
    """The transform cannot be used; the message says why."""


def transformed(spec: Spec, rows: "DataFrame") -> "DataFrame":
    """Raises TransformError, and whatever Spark says of the query."""
    if spec.transform.sql:
        rows.createOrReplaceTempView("input")
        return rows.sparkSession.sql(spec.transform.sql)
    if spec.transform.python:
        return _by_function(spec, rows)
    return rows


def _by_function(spec: Spec, rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import DataFrame

    name, _, function = spec.transform.python.partition(":")
    module = _load(spec.file.parent / name)
    found = getattr(module, function, None)
    if not callable(found):
        raise TransformError(f"transform.python: {name} has no function {function}")
    result = found(rows)
    if not isinstance(result, DataFrame):
        raise TransformError(
            f"transform.python: {function} returned {type(result).__name__}, not a DataFrame"
        )
    return result


def _load(file: Path) -> object:
    """As a module whose functions go to executors by value: they cannot import it there."""
    from pyspark import cloudpickle

    name = f"runnel_transform_{file.stem}"
    found = importlib.util.spec_from_file_location(name, file)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # not annotated
    try:
        found.loader.exec_module(module)
    except Exception as error:
        raise TransformError(f"{file.name}: {type(error).__name__}: {error}") from error
    return module
