"""A Spark standalone cluster on this machine: a master and workers, processes of their own.

PySpark ships no scripts to start one, but it has the classes. Each is ended by its own process id.
"""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from runnel.spark import find_java
from tests.support.kafka_tools import free_port

SPARK_HOME = Path(pyspark.__file__).parent
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
_DEPLOY = "org.apache.spark.deploy"


class ClusterError(Exception):
    """A part did not start; the message holds what it printed."""


class SparkCluster:
    """Use as a context manager. `environ` is what executors see beside the usual."""

    def __init__(
        self, folder: Path, workers: int = 2, environ: dict[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._count = workers
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **(environ or {}),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        port = self.master.rpartition(":")[2]
        self._run("master", f"{_DEPLOY}.master.Master", ["--port", port])
        self._await("master", "I have been elected leader")
        for number in range(self._count):
            work = ["--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / "work")]
            self._run(f"worker-{number}", f"{_DEPLOY}.worker.Worker", [*work, self.master])
        for number in range(self._count):
            self._await(f"worker-{number}", "Successfully registered with master")

    def _run(self, name: str, main_class: str, arguments: Sequence[str]) -> None:
        command = [str(SPARK_HOME / "bin/spark-class"), main_class, "--host", "127.0.0.1"]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*command, "--webui-port", "0", *arguments],
                    env=self._environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _await(self, name: str, line: str) -> None:
        log = self._folder / f"{name}.log"
        deadline = time.monotonic() + START_TIMEOUT_S
        while not re.search(line, log.read_text(errors="replace")):
            ended = any(process.poll() is not None for process in self._processes)
            if ended or time.monotonic() > deadline:
                raise ClusterError(f"{name} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
