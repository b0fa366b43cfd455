"""What a sink writes, read back by librdkafka."""

from collections import Counter

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.spark_stage import PATIENCE_S, Case, Stage, refusal

ROWS = "SELECT cast(id AS string) AS key, concat('value ', id) AS value FROM range(60)"
Record = tuple[int, bytes | None, bytes | None, tuple[object, ...]]


def read_back(stage: Stage, topic: str, partitions: int, count: int) -> Counter[Record]:
    """And nothing more than `count`: what is written twice would be seen."""
    settings = {"bootstrap.servers": stage.bootstrap, "group.id": "unused", "log_level": 0}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in range(partitions)])
    found: Counter[Record] = Counter()
    at_end: set[int] = set()
    while len(at_end) < partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "no answer"
        if message.error() is not None:
            at_end.add(message.partition() or 0)
            continue
        headers = tuple(message.headers() or ())
        found[message.partition() or 0, message.key(), message.value(), headers] += 1
    consumer.close()
    assert found.total() == count, f"{found.total()} records instead of {count}"
    return found


def batch(stage: Stage) -> object:
    topic = stage.topic("written", 3)
    frame = stage.spark.sql(ROWS)
    frame.write.format(stage.format).mode("append").options(
        **stage.options({"topic": topic})
    ).save()
    found = read_back(stage, topic, 3, 60)
    assert {value for _, _, value, _ in found} == {f"value {n}".encode() for n in range(60)}
    return found  # partitions too: a key goes where Kafka's own partitioner puts it


def every_column(stage: Stage) -> object:
    """Topic and partition by row, null keys and values, headers."""
    first, second = stage.topic("column-a", 2), stage.topic("column-b", 2)
    frame = stage.spark.sql(
        f"""SELECT if(id % 2 = 0, '{first}', '{second}') AS topic, cast(id % 2 AS int) AS partition,
                   if(id < 4, NULL, cast(concat('k', id) AS binary)) AS key,
                   if(id > 8, NULL, cast(concat('v', id) AS binary)) AS value,
                   if(id < 2, NULL, array(
                       named_struct('key', 'id', 'value', cast(concat('h', id) AS binary)),
                       named_struct('key', 'id', 'value', cast(NULL AS binary)))) AS headers
            FROM range(12)"""
    )
    options = stage.options({"includeHeaders": "true"})
    frame.write.format(stage.format).mode("append").options(**options).save()
    return read_back(stage, first, 2, 6), read_back(stage, second, 2, 6)


def option_before_column(stage: Stage) -> object:
    wanted, other = stage.topic("wanted"), stage.topic("other")
    frame = stage.spark.sql(f"SELECT '{other}' AS topic, 'x' AS value")
    frame.write.format(stage.format).mode("append").options(
        **stage.options({"topic": wanted})
    ).save()
    return read_back(stage, wanted, 1, 1), read_back(stage, other, 1, 0)


def stream(stage: Stage) -> object:
    """A topic is copied; a second run has nothing left to copy."""
    source, copy = stage.topic("source", 2), stage.topic("copy", 2)
    sent = stage.send(source, 20, 2)
    options = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 15}
    for _ in range(2):
        if stage.format == "runnel":
            options["queryId"] = f"copy-{source}"
        frame = stage.stream(**options).load().select("key", "value", "partition")
        writer = frame.writeStream.format(stage.format)
        more = {"topic": copy, **({"queryId": f"to-{copy}"} if stage.format == "runnel" else {})}
        query = (
            writer.options(**stage.options(more))
            .option("checkpointLocation", str(stage.folder / f"copy-{stage.format}"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(round(PATIENCE_S)), "the copy did not end"
    found = read_back(stage, copy, 2, 40)
    assert found == Counter((record.partition, record.key, record.value, ()) for record in sent)
    return found


def refused_rows(stage: Stage) -> object:
    """The same mistakes are refused: no topic, no value, a value of another type."""
    topic = stage.topic("refused")

    def write(query: str, **options: object) -> None:
        frame = stage.spark.sql(query)
        frame.write.format(stage.format).mode("append").options(**stage.options(options)).save()

    seen = [
        refusal(lambda: write("SELECT 'x' AS value"), "topic"),
        refusal(lambda: write("SELECT 'x' AS key", topic=topic), "value"),
        refusal(lambda: write("SELECT 1 AS value", topic=topic), "value", "binary"),
        refusal(lambda: write("SELECT 'x' AS value, 1 AS key", topic=topic), "key", "binary"),
        refusal(
            lambda: write("SELECT cast(NULL AS string) AS topic, 'x' AS value"), "topic", "null"
        ),
    ]
    read_back(stage, topic, 1, 0)
    return seen


CASES = [
    Case("a batch is written", batch),
    Case("topic, partition, headers by row", every_column),
    Case("the option topic goes before the column", option_before_column),
    Case("a stream is written", stream),
    Case("rows that no topic can have are refused", refused_rows),
]
