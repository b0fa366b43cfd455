"""The half of `make compat`'s suite `spark` that needs no jars: Runnel's source on Runnel.

What each case asserts is what Spark's own connector does; there it is made of both.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.process import BrokerProcess
from tests.support.spark_cases import CASES
from tests.support.spark_stage import Case, Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case: Case, spark: "SparkSession", broker: BrokerProcess, tmp_path: Path) -> None:
    case.run(Stage(spark, "runnel", broker.bootstrap, tmp_path))
