"""A Spark session that is set up well for topics: `session("orders")`, and nothing else to know.

Spark's defaults are made for a cluster of years ago. What is set here, and why, is in `_SETTINGS`
and `_local`; every one of them can be set otherwise. Variables of the environment are set too, but
never against what the user has set, because a JVM reads them when it starts.
"""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.spark.java import SparkSetupError, find_java
from runnel.spark.workers import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Setting = str | int | float | bool
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
LOG_LEVELS: Final = ("off", "fatal", "error", "warn", "info", "debug", "trace")
TRIES_PER_TASK: Final = 4  # Spark's own on a cluster; `local[N]` would fail at the first
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")
_SETTINGS: Final[Mapping[str, str]] = {
    # Rows that go to a Python sink: fewer, larger batches cost less per row.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.execution.arrow.pyspark.enabled": "true",  # toPandas and createDataFrame
    # Filters on offset, timestamp and partition decide what is read at all (`pushdown`).
    "spark.sql.python.filterPushdown.enabled": "true",
    # Between the JVM and Python: a socket file costs less than a connection of the loopback.
    "spark.python.unix.domain.socket.enabled": "true",
    # State outgrows the heap; and transformWithState works with no other.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.ui.showConsoleProgress": "false",
}


def session(
    app: str = "runnel",
    *,
    cores: int | None = None,
    master: str | None = None,
    remote: str | None = None,
    memory: str | None = None,
    ui: bool = False,
    log_level: str = "ERROR",
    conf: Mapping[str, Setting] | None = None,
    **more: Setting,
) -> "SparkSession":
    """The Spark session of this process; made if there is none yet.

    Args:
        app: its name, shown in Spark's own pages.
        cores: tasks at a time on this machine; all cores unless told.
        master: another master than this machine, such as `spark://host:7077`.
        remote: a Spark Connect server, such as `sc://host:15002`; no Java is needed then.
        memory: of the JVM, such as `4g`; a quarter of the machine's, 1 to 8 GB, unless told.
        ui: whether Spark's web page is served, at port 4040.
        log_level: what Spark's JVM tells on standard error: `ERROR`, `WARN`, `INFO`.
        conf: any setting of Spark by its name; it goes before all that is set here.
        more: the same as keywords, `_` for `.`: `spark_sql_shuffle_partitions=8`.
    """
    _check_installed()
    asked = {**_as_text(conf or {}), **_as_text(_with_dots(more))}
    if remote is not None:
        return _connected(app, remote, asked)
    settings = {
        "spark.app.name": app,
        "spark.ui.enabled": _text(ui),
        "spark.driver.memory": memory or _memory(),
        **_SETTINGS,
        **(_local(cores) if master is None else {"spark.master": master}),
        **asked,
    }
    settings |= _logging(log_level, asked)
    _prepare_environment(is_local=master is None)
    return _built(settings)


def _connected(app: str, remote: str, asked: dict[str, str]) -> "SparkSession":
    """The server has its own settings; a client may only ask for those of a session."""
    if importlib.util.find_spec("grpc") is None:
        raise SparkSetupError("Spark Connect needs grpcio: pip install 'runnel[spark]'")
    if remote.startswith("local"):  # PySpark starts the server itself
        _prepare_environment(is_local=True)
        settings = {**_SETTINGS, "spark.ui.enabled": "false", "spark.driver.memory": _memory()}
        asked = {**settings, **asked, **_logging("ERROR", asked)}
    return _built({"spark.app.name": app, "spark.remote": remote, **asked})


def _built(settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _local(cores: int | None) -> dict[str, str]:
    """On this machine alone: as many parts after a shuffle as cores, not 200, and no host name."""
    count = cores if cores is not None else len(os.sched_getaffinity(0))
    if count < 1:
        raise SparkSetupError(f"cores={count}: at least one is needed")
    return {
        "spark.master": f"local[{count},{TRIES_PER_TASK}]",
        "spark.sql.shuffle.partitions": str(max(2, count)),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }


def _memory() -> str:
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(8, max(1, machine_bytes // 4 // 2**30))}g"


def _check_installed() -> None:
    for name in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(name) is None:
            raise SparkSetupError(f"{name} is not installed: pip install 'runnel[spark]'")


def _logging(level: str, asked: Mapping[str, str]) -> dict[str, str]:
    """Spark greets with half a page; a user's own file for its log goes before ours."""
    if level.lower() not in LOG_LEVELS:
        raise SparkSetupError(f"log_level={level}: write one of {', '.join(LOG_LEVELS)}")
    conf_dir = os.environ.get("SPARK_CONF_DIR")
    if conf_dir and any(Path(conf_dir).glob("log4j2.*")):
        return {}
    ours = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} -Drunnel.spark.log.level={level.lower()}"
    options = "spark.driver.extraJavaOptions"
    return {options: f"{ours} {asked.get(options, '')}".rstrip()}


def _prepare_environment(is_local: bool) -> None:
    """Workers run in this very interpreter: `python3` of the PATH may have no pyspark at all."""
    if is_local:  # else Spark warns of a host name that leads back to this machine
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = worker_python() if is_local else sys.executable
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started the JVM
        os.environ["JAVA_HOME"] = str(find_java().home)


def _with_dots(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    if unknown := [name for name in named if not name.startswith("spark.")]:
        raise TypeError(
            f"session() has no argument {unknown[0]!r}; settings of Spark begin with spark_"
        )
    return named


def _as_text(settings: Mapping[str, Setting]) -> dict[str, str]:
    return {name: _text(value) for name, value in settings.items()}


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
