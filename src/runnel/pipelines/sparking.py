"""Spark for a pipeline: its session, with what the JVM says kept out of the terminal."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.pipelines.failures import UNKNOWN, Failure, PipelineError
from runnel.pipelines.home import Home
from runnel.pipelines.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_for(spec: Spec, home: Home) -> "Iterator[SparkSession]":
    """Raises SparkSetupError. The JVM's own words go to `spark.log` of the pipeline's folder.

    A session that this process has already is taken as it is, and left running.
    """
    from runnel.spark.sessions import session

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors as pages of JSON
    on = spec.spark
    is_ours = not _has_session()
    conf = {"spark.sql.warehouse.dir": str(home.folder / "warehouse"), **on.conf}
    with _stderr_to(home.spark_log):
        spark = session(
            f"runnel pipeline {spec.name}",
            cores=on.cores,
            master=on.master or None,
            memory=on.memory or None,
            conf=conf,
        )
    gateway = spark.sparkContext._gateway
    if is_ours and gateway is not None and gateway.proc is not None:
        home.note_jvm(gateway.proc.pid)
    try:
        yield spark
    finally:
        with suppress(Exception):  # the JVM may be dead already
            if is_ours:
                spark.stop()


def check_jvm(spark: "SparkSession | None", home: Home) -> None:
    """Raises PipelineError if it has ended: nothing can be tried again without it."""
    gateway = None if spark is None else spark.sparkContext._gateway
    if gateway is None or gateway.proc is None or gateway.proc.poll() is None:
        return
    raise PipelineError(
        Failure(
            UNKNOWN,
            f"Spark's JVM has ended with status {gateway.proc.returncode}; {home.spark_log} may say"
            " why. If it was killed for want of memory, set spark.memory. Run it again: nothing is"
            " lost.",
        )
    )


def _has_session() -> bool:
    """Of whichever thread, so the active session, which each thread has of its own, says nothing.

    Without importing PySpark for the question.
    """
    module = sys.modules.get("pyspark.core.context")
    return module is not None and module.SparkContext._active_spark_context is not None


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """For processes that are started meanwhile: they inherit it."""
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)
