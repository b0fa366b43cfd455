"""Spark's own Kafka connector and Runnel's source, the same cases, on Runnel and on Apache Kafka.

`python -m tests.compat.spark.spark_suite runnel`; with `kafka` only on Kafka, which proves the
cases themselves. What a case saw has to be equal on all four stages. Words after it choose cases.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from runnel.spark import session
from tests.compat.checks import Checks
from tests.compat.spark.connector import connector_jars
from tests.support.kafka_tools import ROOT, KafkaBroker
from tests.support.process import PACKAGES, BrokerProcess
from tests.support.spark_cases import CASES
from tests.support.spark_stage import Case, Stage

FORMATS = ("kafka", "runnel")


class Suite:
    """Runs a case on every stage; the first is Spark's connector on Kafka."""

    def __init__(self, stages: dict[str, Stage]) -> None:
        self._stages = stages
        self._seen: dict[str, tuple[str, object]] = {}  # by case: on which stage first, and what

    def check(self, checks: Checks, case: Case) -> None:
        for name, stage in self._stages.items():
            checks.check(f"{name}: {case.name}", lambda: self._run(case, name, stage))  # noqa: B023

    def _run(self, case: Case, name: str, stage: Stage) -> None:
        found = case.run(stage)
        first, wanted = self._seen.setdefault(case.name, (name, found))
        assert found == wanted, f"{first} saw {wanted!r}, but here {found!r}"


def _is_wanted(case: Case, words: list[str]) -> bool:
    """All, or those with one of the words that a developer gave."""
    return not words or any(word in case.name for word in words)


def main() -> None:
    wanted = [case for case in CASES if _is_wanted(case, sys.argv[2:])]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), str(ROOT)])
    checks = Checks((KafkaException, PySparkException, Py4JError, subprocess.SubprocessError))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-spark-")))
        brokers: dict[str, KafkaBroker | BrokerProcess] = {"Kafka": KafkaBroker(folder / "kafka")}
        if sys.argv[1] == "runnel":
            brokers["Runnel"] = BrokerProcess(folder / "runnel")
        for broker in brokers.values():
            stack.enter_context(broker)
        spark = session("compat", cores=2, memory="1g", spark_jars=connector_jars())
        stack.callback(spark.stop)
        stages = {}
        for form in FORMATS:
            for name, broker in brokers.items():
                checkpoints = folder / f"{name}-{form}"
                stages[f"{form} on {name}"] = Stage(spark, form, broker.bootstrap, checkpoints)
        suite = Suite(stages)
        for case in wanted:
            suite.check(checks, case)
    checks.end()


if __name__ == "__main__":
    main()
