"""Every option of `spark.read.format("runnel")` and `spark.readStream.format("runnel")`, declared.

The readers check names against this table, and docs/spark-options.md is written from it by
tools/document_spark.py. Options that Spark's Kafka source has too mean the same here.
"""

from typing import Final, NamedTuple

BATCH: Final = "batch"
STREAM: Final = "stream"
BOTH: Final = "both"


class Option(NamedTuple):
    name: str  # as it is documented; case does not matter
    default: str
    reads: str  # BATCH, STREAM or BOTH
    meaning: str
    example: str
    connector: bool = True  # Spark's Kafka source has it too


WHAT: Final = (
    Option(
        "kafka.bootstrap.servers",
        "",
        BOTH,
        "The brokers to begin with. Required, except where `path` is read with no broker.",
        "localhost:9092",
    ),
    Option("subscribe", "", BOTH, "Topics by name, with commas between them.", "orders,payments"),
    Option(
        "subscribePattern",
        "",
        BOTH,
        "A regular expression; every topic in whose name it is found is read, also one that comes"
        " later. Internal topics are left out.",
        "orders-.*",
    ),
    Option("assign", "", BOTH, "Partitions by topic.", '{"orders":[0,1]}'),
    Option(
        "includeHeaders",
        "false",
        BOTH,
        "Adds the column `headers`, an array of (key, value).",
        "true",
    ),
)
WHERE: Final = (
    Option(
        "startingOffsets",
        "batch: earliest, stream: latest",
        BOTH,
        "`earliest`, `latest` (streams only) or an offset for each partition, where -2 means"
        " earliest and -1 latest (streams only). A stream looks at it when it starts for the first"
        " time; partitions that come later are read from their beginning.",
        '{"orders":{"0":23,"1":-2}}',
    ),
    Option(
        "startingTimestamp",
        "",
        BOTH,
        "Milliseconds since 1970: each partition from its first record of that time or later."
        " Comes before the other starting options.",
        "1700000000000",
    ),
    Option(
        "startingOffsetsByTimestamp",
        "",
        BOTH,
        "The same, by partition. Comes before `startingOffsets`.",
        '{"orders":{"0":1700000000000,"1":1700000000000}}',
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "error",
        BOTH,
        "Where no record is that new: `error`, or `latest`.",
        "latest",
    ),
    Option(
        "endingOffsets",
        "latest",
        BATCH,
        "`latest` or an offset for each partition, exclusive, where -1 means latest.",
        '{"orders":{"0":50,"1":-1}}',
    ),
    Option(
        "endingTimestamp",
        "",
        BATCH,
        "Each partition up to its first record of that time or later; to the end where there is"
        " none. Comes before the other ending options.",
        "1700003600000",
    ),
    Option(
        "endingOffsetsByTimestamp",
        "",
        BATCH,
        "The same, by partition. Comes before `endingOffsets`.",
        '{"orders":{"0":1700003600000,"1":1700003600000}}',
    ),
    Option(
        "failOnDataLoss",
        "true",
        BOTH,
        "Fail when records that were to be read are gone: expired, or their topic deleted or made"
        " anew. With `false` a warning is logged and the read goes on with what is there.",
        "false",
    ),
)
HOW_MUCH: Final = (
    Option(
        "maxOffsetsPerTrigger",
        "",
        STREAM,
        "At most so many offsets in a batch, shared among the partitions by what each has to read;"
        " none is left out.",
        "100000",
    ),
    Option(
        "maxBytesPerTrigger",
        "",
        STREAM,
        "At most about so many bytes in a batch, as they are on disk: offsets times the average"
        " size of a record in the partition's log, which its broker is asked for every 30 seconds."
        " Off by as much as the records of a batch differ from the average.",
        "64m",
        False,
    ),
    Option(
        "minOffsetsPerTrigger",
        "",
        STREAM,
        "Wait until there are so many, or until `maxTriggerDelay`. Not with"
        " `trigger(availableNow=True)`, which waits for nothing.",
        "1000",
    ),
    Option(
        "maxTriggerDelay",
        "15m",
        STREAM,
        "How long `minOffsetsPerTrigger` may hold back a batch.",
        "2m",
    ),
    Option(
        "minPartitions",
        "",
        BOTH,
        "At least about so many tasks: large ranges of offsets are split.",
        "16",
    ),
    Option(
        "maxRecordsPerPartition",
        "",
        BOTH,
        "At most so many offsets in the range of a task.",
        "1000000",
    ),
)
WHO: Final = (
    Option(
        "queryId",
        "",
        STREAM,
        "The name of the query, the same at every start. A stream needs it, or a group: Spark does"
        " not tell a Python source where its checkpoint is, so where the first batch begins is kept"
        " in the consumer group `spark-runnel-QUERYID`, and a crash before the first batch is done"
        " loses nothing. One query per name.",
        "orders-to-lake",
        False,
    ),
    Option(
        "groupIdPrefix",
        "spark-runnel",
        BOTH,
        "What the name of that group begins with, before `-` and the query's id.",
        "billing",
    ),
    Option("kafka.group.id", "", BOTH, "The whole name of the group, instead of both.", "billing"),
    Option("groupId", "", BOTH, "The same as `kafka.group.id`.", "billing", False),
    Option(
        "commitGroup",
        "true",
        STREAM,
        "Commit the end of every finished batch to the group, so that Kafka's tools show the lag.",
        "false",
        False,
    ),
    Option(
        "topicIds",
        "true",
        STREAM,
        "Keep the ids of topics in the checkpoint, so that a topic that was deleted and made anew"
        " is noticed. With `false` the checkpoint is such as Spark's Kafka source reads too.",
        "false",
        False,
    ),
)
READING: Final = (
    Option(
        "isolation",
        "read_uncommitted",
        BOTH,
        "`read_committed` leaves out records of transactions that were aborted or are open. The"
        " same as `kafka.isolation.level`.",
        "read_committed",
        False,
    ),
    Option(
        "pushdown",
        "false",
        BATCH,
        "Filters on `topic`, `partition`, `offset` and `timestamp` become ranges of offsets. Wants"
        " `spark.sql.python.filterPushdown.enabled=true`, which `runnel.spark.session` sets.",
        "true",
        False,
    ),
    Option(
        "timestampDisorder",
        "",
        BATCH,
        "For `pushdown`: how far a record's timestamp can lie before that of an earlier record of"
        " its partition. Without it an upper bound on `timestamp` saves no reading.",
        "10m",
        False,
    ),
    Option(
        "readMode",
        "auto",
        BOTH,
        "`auto`: the broker's segment files where they are on this machine and surely the right"
        " ones, else the broker; `local`: likewise, and an error if no partition can be read so;"
        " `broker`: never files. See [Spark reads segment files](spark-local.md).",
        "local",
        False,
    ),
    Option(
        "path",
        "",
        BOTH,
        "The data folders (`log.dirs`) of a broker, several between commas; a batch read needs no"
        " broker then.",
        "/var/lib/runnel",
        False,
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "120000",
        BOTH,
        "How long a task waits for records before it fails.",
        "30000",
    ),
    Option(
        "fetchOffset.numRetries",
        "3",
        BOTH,
        "How often offsets are asked for again when the end of a log is behind what was read.",
        "5",
    ),
    Option("fetchOffset.retryIntervalMs", "10", BOTH, "The wait in between.", "100"),
    Option(
        "partition.metadata.cache.ttl.ms",
        "-1",
        STREAM,
        "How long the list of partitions is believed; -1 asks for it in every batch.",
        "60000",
    ),
)
DECODING: Final = (
    Option(
        "decode",
        "",
        BOTH,
        "Typed columns instead of bytes: `string`, `json` or `avro`.",
        "json",
        False,
    ),
    Option(
        "valueSchema",
        "",
        BOTH,
        "What values are read as: for `json` a schema of Spark, for `avro` one of Avro.",
        "id BIGINT, name STRING",
        False,
    ),
    Option(
        "schemaRegistry",
        "",
        BOTH,
        "The registry's URL: values begin with a zero byte and the id of their schema.",
        "http://localhost:8081",
        False,
    ),
    Option(
        "schemaSubject",
        "TOPIC-value",
        BOTH,
        "Whose latest schema values are read as, where `valueSchema` is not given.",
        "orders-value",
        False,
    ),
    Option(
        "badRecords",
        "fail",
        BOTH,
        "Values that do not fit: `fail`, `null` (adds `_error` and `_raw`) or `dlq`.",
        "null",
        False,
    ),
    Option("deadLetterTopic", "", BOTH, "Where `badRecords=dlq` sends them.", "orders-dlq", False),
    Option(
        "nestValue",
        "false",
        BOTH,
        "One struct `value` instead of a column for each of its fields.",
        "true",
        False,
    ),
)
SECTIONS: Final = {
    "What is read": WHAT,
    "From where to where": WHERE,
    "How much at a time": HOW_MUCH,
    "Who reads": WHO,
    "How it is read": READING,
    "Values as columns": DECODING,
}
OPTIONS: Final = {option.name: option for section in SECTIONS.values() for option in section}
