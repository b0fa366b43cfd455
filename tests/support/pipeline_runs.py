"""A pipeline's file run in this process, on a session that is there already: once, to its end."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.pipelines import kinds
from runnel.pipelines.kind import Run, Stream, Turn
from runnel.pipelines.spec import Spec, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 120


def spec_of(text: str, folder: Path, bootstrap: str = "localhost:9092") -> Spec:
    """Of a file below `folder`, which relative paths start from."""
    folder.mkdir(parents=True, exist_ok=True)
    return read(text, folder / "pipeline.yml", {"RUNNEL_BOOTSTRAP_SERVER": bootstrap})


def run_once(spark: "SparkSession", spec: Spec, home: Path) -> list[str]:
    """What it told, line by line. Raises what the query failed with."""
    told: list[str] = []
    run = Run(spec, spark, home, spec.name, lambda: False, told.append)
    flow = kinds.find(spec.kind).build(run)
    if isinstance(flow, Stream):
        writer = flow.writer.option("checkpointLocation", str(home / "checkpoint"))
        query = writer.option("queryId", spec.name).trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S), "it does not end"
    else:
        number = 0
        while flow.step(Turn(number)).has_more:
            number += 1
    between: Callable[[], object] | None = flow.between
    if between is not None:
        between()
    return told
