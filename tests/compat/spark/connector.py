"""Spark's own Kafka connector, for `spark.jars`: Maven brings it once."""

import os

from tests.support.kafka_tools import ROOT, class_path

POM = ROOT / "tests/compat/spark/pom.xml"


def connector_jars() -> str:
    return class_path(POM).replace(os.pathsep, ",")
