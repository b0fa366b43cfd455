"""The files of a Spark Declarative Pipelines project, as `init --declarative` writes them.

`{name}`, `{topic}` and the like are filled in by `str.format`, so braces that stay are doubled.
"""

SPEC = """\
# What `spark-pipelines run` reads. It runs what is new since the last time, and ends.
name: {name}
storage: {storage}  # checkpoints: how far each flow has read
libraries:
  - glob:
      include: transformations/**
configuration:  # of the session, text only; what must be known when Spark starts is in conf/
  spark.sql.shuffle.partitions: "2"
"""

DEFAULTS = """\
# Settings that Spark has to know when it starts: SPARK_CONF_DIR=conf spark-pipelines run
# A catalog that is still there the next time (Derby, in the folder catalog/). With the one in
# memory the second run fails with LOCATION_ALREADY_EXISTS.
spark.sql.catalogImplementation                      hive
spark.hadoop.javax.jdo.option.ConnectionURL          jdbc:derby:;databaseName=catalog;create=true
spark.sql.warehouse.dir                              warehouse
spark.driver.extraJavaOptions                        -Dderby.stream.error.file=catalog.log
spark.driver.memory                                  1g
spark.driver.bindAddress                             127.0.0.1
spark.driver.host                                    127.0.0.1
spark.ui.enabled                                     false
spark.ui.showConsoleProgress                         false
# Between the JVM and Python a socket file costs less than a connection.
spark.python.unix.domain.socket.enabled              true
spark.sql.streaming.stateStore.providerClass         \
org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
"""

LOG = """\
# What Spark's JVM tells on standard error; `info` shows all that it does.
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console

appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex

# Else PySpark sets the level of all to WARN, and says so.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""

TABLE = '''\
"""The topic `{topic}` as a table that grows: each run takes in what was sent since the last one."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame

BOOTSTRAP = os.environ.get("RUNNEL_BOOTSTRAP_SERVER", "{bootstrap}")

# `spark` is put into this module by spark-pipelines.
if spark.conf.get("spark.sql.catalogImplementation") == "in-memory":  # noqa: F821
    raise SystemExit(
        "this catalog is forgotten at the end, and a second run would fail: start this with"
        " `runnel pipeline run {name}`, or `SPARK_CONF_DIR=conf spark-pipelines run`"
    )


@dp.table(name="{table}", format="parquet", comment="Records of the topic {topic}")
def {table}() -> DataFrame:
    return (
        spark.readStream.format("runnel")  # noqa: F821
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "{topic}")
        .option("startingOffsets", "earliest")
        .option("queryId", "{name}-{table}")
        .option("decode", "json")
        .option("valueSchema", "{schema}")
        .option("badRecords", "null")  # what cannot be decoded is kept, with its _error
        .load()
    )
'''

VIEW = """\
-- Made anew by each run, out of the whole table.
CREATE MATERIALIZED VIEW {table}_by_{group} AS
SELECT {group}, count(*) AS {table}, round(sum({amount}), 2) AS {amount}
FROM {table}
WHERE _error IS NULL
GROUP BY {group}
"""

SINK = '''\
"""Back to a topic: rows of the table that are worth a message, each exactly once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame

BOOTSTRAP = os.environ.get("RUNNEL_BOOTSTRAP_SERVER", "{bootstrap}")
LARGE = 90

dp.create_sink(
    "large_{table}",
    "runnel",
    {{
        "kafka.bootstrap.servers": BOOTSTRAP,
        "topic": "large-{topic}",
        "exactlyOnce": "true",
        "queryId": "{name}-large-{table}",
    }},
)


@dp.append_flow(target="large_{table}", name="to_large_{table}")
def to_large_{table}() -> DataFrame:
    rows = spark.readStream.table("{table}").where(f"{amount} >= {{LARGE}}")  # noqa: F821
    return rows.selectExpr(
        "{group} AS key", "to_json(struct({columns})) AS value"
    )
'''

README = """\
# {name}

A project for Spark Declarative Pipelines that reads the topic `{topic}` of Runnel or Kafka.

| file | makes |
|---|---|
| `transformations/{table}.py` | the table `{table}` out of the topic `{topic}` |
| `transformations/{table}_by_{group}.sql` | the materialised view `{table}_by_{group}` out of it |
| `transformations/large_{table}.py` | the topic `large-{topic}`, exactly once |
| `conf/` | what Spark has to know when it starts: a catalog that stays, a quiet log |

Run it, here, as often as you like; each time it takes in what is new, and ends:

    runnel pipeline run .                      # sets JAVA_HOME and all else
    SPARK_CONF_DIR=conf spark-pipelines run    # the same by hand, where there is a Java 17

`spark-pipelines dry-run` looks for mistakes without reading. `RUNNEL_BOOTSTRAP_SERVER` names
another broker than `{bootstrap}`. `runnel pipeline run . --every 1m` goes on until Ctrl-C.

Look at the tables:

    SPARK_CONF_DIR=conf spark-sql -e 'select * from {table}_by_{group}'

Begin anew: `spark-pipelines run --full-refresh-all` empties the tables and reads the topic from
its start, where records may have expired meanwhile; `large-{topic}` then gets its rows once more.
Derby allows one process at a time in `catalog/`, and Spark Connect uses port 15002 of this machine:
run one project at a time.
"""

IGNORED = """\
# What running makes.
catalog/
catalog.log
pipeline-storage/
warehouse/
__pycache__/
"""
