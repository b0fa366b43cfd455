"""A pipeline built and not run: what Spark says of it, for `validate --spark` and `explain`."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from runnel.pipelines import kinds
from runnel.pipelines.failures import PipelineError, classify
from runnel.pipelines.home import Home
from runnel.pipelines.kind import Flow, Run, Stream
from runnel.pipelines.sparking import spark_for
from runnel.pipelines.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def built(spec: Spec, folder: Path) -> Iterator[Flow]:
    """With its state in another folder, so that nothing is touched. Raises PipelineError."""
    home = Home(folder)
    home.folder.mkdir(parents=True, exist_ok=True)
    kind = kinds.find(spec.kind)
    with ExitStack() as stack:
        try:
            spark: SparkSession | None = None
            if kind.uses_spark:
                spark = stack.enter_context(spark_for(spec, home))
            run = Run(
                spec=spec,
                spark=cast("SparkSession", spark),  # None where the kind uses none
                home=folder,
                query_id=f"{spec.name}.dry-run",
                is_stopping=lambda: False,
                tell=lambda text: None,
            )
            flow = kind.build(run)
        except Exception as error:
            raise PipelineError(classify(spec, error)) from error
        yield flow


def plan_of(flow: Flow) -> str:
    if not isinstance(flow, Stream):
        return "it is no streaming query: each turn plans its own reads"
    rows: Any = flow.writer._df if flow.plan is None else flow.plan
    plan = rows._sc._jvm.PythonSQLUtils.explainString(rows._jdf.queryExecution(), "formatted")
    return str(plan).strip()
