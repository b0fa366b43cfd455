"""What is asked of Kafka's own tools, in order: each command sees what those before it did.

`{bootstrap}`, `{data}` and `{files}` stand for the broker's address, its data folder and a folder
with the files that some tools read. Topics whose name ends in `-one` have one partition, so that
everything printed about them is decided by the commands alone.
"""

from tests.compat.tools.command import Command, each
from tests.compat.tools.group_commands import GROUP_FILES, group_commands, transaction_commands

TOOLS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
}


# What the tools read; `{files}/NAME` in a command.
FILES = {
    **GROUP_FILES,
    "delete.json": '{"version": 1, "partitions": ['
    '{"topic": "lines-one", "partition": 0, "offset": 2}]}',
    "delete-beyond.json": '{"version": 1, "partitions": ['
    '{"topic": "lines-one", "partition": 0, "offset": 200}]}',
}

_TOPIC_COMMANDS = """
--create --topic lines-one --partitions 1 --replication-factor 1
--create --topic orders --partitions 3 --replication-factor 1 --config retention.ms=86400000
--create --topic orders --partitions 3 --replication-factor 1
--create --topic orders --if-not-exists
--create --topic by-default
--create --topic bad/name --partitions 1
--create --topic with.dot --partitions 1
--create --topic with_dot --partitions 1
--create --topic too-many-replicas --partitions 1 --replication-factor 3
--create --topic no-partitions --partitions 0
--create --topic unknown-config --config retention.sm=1
--create --topic bad-config --config retention.ms=soon
--create --topic out-of-bounds --config segment.bytes=1
--create --topic hand-placed --replica-assignment 1,1
--create --topic misplaced --replica-assignment 9
--list
--list --topic or.*
--describe
--describe --topic orders
--describe --topic absent
--describe --topics-with-overrides
--describe --under-replicated-partitions
--describe --unavailable-partitions
--describe --at-min-isr-partitions
--describe --under-min-isr-partitions
--alter --topic orders --partitions 5
--alter --topic orders --partitions 2
--alter --topic absent --partitions 2
--describe --topic orders
--delete --topic with.dot
--delete --topic absent
--delete --topic absent --if-exists
--list
"""

_CONFIG_COMMANDS = """
--entity-type topics --entity-name orders --describe
--entity-type topics --entity-name orders --describe --all
--entity-type topics --entity-name orders --alter --add-config max.message.bytes=200000
--entity-type topics --entity-name orders --alter --add-config cleanup.policy=[compact,delete]
--entity-type topics --entity-name orders --describe
--entity-type topics --entity-name orders --alter --delete-config retention.ms,cleanup.policy
--entity-type topics --entity-name orders --alter --delete-config retention.ms
--entity-type topics --entity-name orders --alter --add-config retention.ms=soon
--entity-type topics --entity-name orders --alter --add-config retention.sm=1
--entity-type topics --entity-name orders --alter --add-config segment.bytes=1
--entity-type topics --entity-name absent --alter --add-config retention.ms=1
--entity-type topics --entity-name absent --describe
--entity-type topics --describe
--entity-type brokers --entity-name 1 --describe
--entity-type brokers --entity-name 1 --alter --add-config log.retention.ms=1000000
--entity-type brokers --entity-default --alter --add-config message.max.bytes=900000
--entity-type brokers --entity-name 1 --describe
--entity-type brokers --entity-default --describe
--entity-type topics --entity-name by-default --describe --all
--entity-type brokers --entity-name 1 --alter --add-config broker.rack=here
--entity-type brokers --entity-name 1 --alter --add-config message.max.bytes=many
--entity-type brokers --entity-name 1 --alter --delete-config log.retention.ms
--entity-type brokers --entity-default --alter --delete-config message.max.bytes
--entity-type brokers --entity-name 1 --describe --all
--entity-type brokers --entity-name 9 --describe
--entity-type brokers --describe
--entity-type clients --entity-name app --alter --add-config producer_byte_rate=1048576
--entity-type clients --entity-default --alter --add-config consumer_byte_rate=2097152
--entity-type clients --describe
--entity-type clients --entity-name app --describe
--entity-type clients --entity-name app --alter --add-config producer_bite_rate=1
--entity-type clients --entity-name app --alter --delete-config producer_byte_rate
--entity-type clients --entity-default --alter --delete-config consumer_byte_rate
--entity-type clients --describe
--entity-type users --entity-name ada --alter --add-config request_percentage=50
--user ada --client app --alter --add-config consumer_byte_rate=5
--user ada --client app --describe
--entity-type users --describe
--entity-type users --entity-name ada --describe
--entity-type users --entity-name ada --alter --delete-config request_percentage
"""

_LINES = "tea:two cups\ncake:\nbread:one loaf\ntea:no sugar\n"
_HEADED = "size:big,colour:red\tapple\nsize:small\tplum\n"
_CONSUME = "--topic lines-one --partition 0 --timeout-ms 5000"
_EVERYTHING = (
    "--property print.key=true --property print.offset=true --property print.partition=true"
    " --property print.headers=true --property print.timestamp=true"
)


def commands() -> list[Command]:
    # One batch for each line: what several hold together depends on how fast they came.
    produce = "--bootstrap-server {bootstrap} --topic lines-one --sync"
    found = each("kafka-topics", _TOPIC_COMMANDS)
    found += [
        Command(
            "kafka-console-producer",
            f"{produce} --property parse.key=true --property key.separator=:",
            _LINES,
        ),
        Command("kafka-console-producer", f"{produce} --property parse.headers=true", _HEADED),
        Command(
            "kafka-console-producer", f"{produce} --compression-codec zstd", "late " * 20 + "\n"
        ),
        Command("kafka-console-producer", f"{produce} --property parse.key=true", "no separator\n"),
        Command(
            "kafka-console-producer",
            "--bootstrap-server {bootstrap} --topic stamped-one",
            "the only one\n",
        ),
    ]
    found += each(
        "kafka-console-consumer",
        f"""
{_CONSUME} --offset earliest --max-messages 4
{_CONSUME} --offset earliest --max-messages 7 {_EVERYTHING}
{_CONSUME} --offset 5 --max-messages 1
{_CONSUME} --from-beginning --max-messages 7
--topic lines-one --partition 0 --offset latest --timeout-ms 500
--topic lines-one --partition 0 --offset 9999 --timeout-ms 500
--topic lines-one --partition 7 --offset earliest --timeout-ms 500
""",
    )
    found += each(
        "kafka-get-offsets",
        """
--topic lines-one
--topic lines-one --time earliest
--topic stamped-one --time max-timestamp
--topic stamped-one --time -3
--topic orders --time max-timestamp
--topic lines-one --time 1000
--topic lines-one --time earliest-local
--topic-partitions orders:0-2,lines-one:0
--topic absent
--exclude-internal-topics
""",
    )
    found += each(
        "kafka-delete-records",
        """
--offset-json-file {files}/delete.json
--offset-json-file {files}/delete-beyond.json
""",
    )
    found += each("kafka-get-offsets", "--topic lines-one --time earliest")
    found += each(
        "kafka-console-consumer", f"{_CONSUME} --from-beginning --max-messages 2 {_EVERYTHING}"
    )
    found += each(
        "kafka-log-dirs",
        """
--describe --topic-list lines-one
--describe --broker-list 1
--describe --broker-list 1,9 --topic-list absent
""",
    )
    found += [
        Command(
            "kafka-dump-log",
            "--files {data}/lines-one-0/00000000000000000000.log --print-data-log",
        ),
        Command("kafka-dump-log", "--files {data}/lines-one-0/00000000000000000000.log"),
        Command(
            "kafka-producer-perf-test",
            "--bootstrap-server {bootstrap} --topic orders --num-records 2000 --record-size 100"
            " --throughput 2000 --command-property acks=all",
        ),
    ]
    found += each("kafka-get-offsets", "--topic orders --time earliest")
    found += group_commands() + transaction_commands()
    found += each("kafka-configs", _CONFIG_COMMANDS)
    found += [
        Command("kafka-broker-api-versions", "--bootstrap-server {bootstrap}"),
        Command("kafka-features", "--bootstrap-server {bootstrap} describe"),
        Command("kafka-features", "--bootstrap-server {bootstrap} upgrade --feature no.such=1"),
        Command("kafka-cluster", "cluster-id --bootstrap-server {bootstrap}"),
        Command("kafka-cluster", "list-endpoints --bootstrap-server {bootstrap}"),
        Command("kafka-topics", "--bootstrap-server {bootstrap} --delete --topic orders"),
        Command("kafka-topics", "--bootstrap-server {bootstrap} --list"),
    ]
    return found
