"""What is asked of Kafka's own tools about groups and transactions, after `commands.py`."""

from tests.compat.tools.command import Command, each

# What the tools read; `{files}/NAME` in a command.
GROUP_FILES = {
    "offsets.csv": "readers,lines-one,0,4\n",
    "offsets-bad.csv": "readers,lines-one,zero,4\n",
}

_READ = "--topic lines-one --from-beginning --timeout-ms 8000"
_CONSUME = f"""
--group readers {_READ} --max-messages 2
--group readers {_READ} --max-messages 2 --property print.offset=true
--group newcomers {_READ} --max-messages 3 --consumer-property group.protocol=consumer
--group newcomers {_READ} --max-messages 1 --consumer-property group.protocol=consumer
"""

_ABOUT_GROUPS = """
--list
--list --state
--list --state Empty
--list --state Stable
--list --type
--list --type classic
--list --type consumer
--list --type no-such-type
--describe --group readers
--describe --group readers --offsets --verbose
--describe --group readers --members
--describe --group readers --members --verbose
--describe --group readers --state
--describe --group readers --state --verbose
--describe --group newcomers
--describe --group newcomers --offsets --verbose
--describe --group newcomers --members
--describe --group newcomers --state
--describe --group newcomers --state --verbose
--describe --group absent
--describe --group absent --members
--describe --group absent --state
--describe --all-groups
--describe --all-groups --state
"""

_ABOUT_MEMBERS = """
--list --state
--list --state Stable,Empty
--describe --group {group}
--describe --group {group} --offsets --verbose
--describe --group {group} --members
--describe --group {group} --members --verbose
--describe --group {group} --state
--describe --group {group} --state --verbose
--reset-offsets --group {group} --topic kept-one --to-earliest --execute
--delete --group {group}
--delete-offsets --group {group} --topic kept-one
"""

_RESETS = """
--reset-offsets --group readers --topic lines-one --to-earliest
--reset-offsets --group readers --topic lines-one --to-earliest --dry-run
--reset-offsets --group readers --topic lines-one --to-earliest --execute
--describe --group readers
--reset-offsets --group readers --topic lines-one --to-latest --execute
--describe --group readers
--reset-offsets --group readers --topic lines-one --to-offset 5 --execute
--reset-offsets --group readers --topic lines-one --to-offset 500 --execute
--reset-offsets --group readers --topic lines-one --shift-by -2 --execute
--reset-offsets --group readers --topic lines-one --shift-by 100 --execute
--reset-offsets --group readers --topic lines-one --shift-by -100 --execute
--reset-offsets --group readers --topic lines-one --to-current --execute
--reset-offsets --group readers --topic lines-one --to-datetime 2020-01-01T00:00:00.000 --execute
--reset-offsets --group readers --topic lines-one --to-datetime 2099-01-01T00:00:00.000 --execute
--reset-offsets --group readers --topic lines-one --by-duration PT1H --execute
--reset-offsets --group readers --topic lines-one --by-duration PT0S --execute
--reset-offsets --group readers --topic lines-one:0 --to-offset 3 --execute
--reset-offsets --group readers --topic lines-one:7 --to-offset 3 --execute
--reset-offsets --group readers --topic absent --to-earliest --execute
--reset-offsets --group readers --all-topics --to-latest --execute
--reset-offsets --group readers --from-file {files}/offsets.csv --execute
--reset-offsets --group readers --from-file {files}/offsets-bad.csv --dry-run
--reset-offsets --group readers --topic lines-one --to-latest --dry-run --export
--reset-offsets --group newcomers --topic lines-one --to-offset 1 --execute
--reset-offsets --group made-by-reset --topic stamped-one --to-earliest --execute
--reset-offsets --all-groups --all-topics --to-latest --dry-run
--describe --group readers
--describe --group newcomers
--describe --group made-by-reset
--delete-offsets --group readers --topic orders
--delete-offsets --group readers --topic lines-one
--delete-offsets --group readers --topic lines-one:0
--delete-offsets --group newcomers --topic absent
--delete-offsets --group absent --topic lines-one
--describe --group readers
--delete --group absent
--delete --group made-by-reset
--delete --group made-by-reset
--delete --group newcomers
--list
"""

_KINDS = """
--list
--list --consumer
--list --share
--list --group-type classic
--list --group-type consumer
--list --group-type no-such-type
--list --protocol consumer
--list --protocol no-such-protocol
"""

_TRANSACTIONS = """
list
list --duration-filter 86400000
list --transactional-id-pattern ^mea.*
list --transactional-id-pattern ^no-such.*
describe --transactional-id {id}
describe --transactional-id absent
describe-producers --topic {topic} --partition 0
find-hanging --broker-id 1
find-hanging --topic {topic} --partition 0
find-hanging --broker-id 9
"""

_ENDS = """
abort --topic held-one --partition 0 --start-offset 7
force-terminate --transactional-id absent
force-terminate --transactional-id meant-long
"""


def group_commands() -> list[Command]:
    found = each("kafka-console-consumer", _CONSUME)
    found += each("kafka-consumer-groups", _ABOUT_GROUPS)
    found += each("kafka-groups", _KINDS)
    members = "--create --topic kept-one --partitions 1 --replication-factor 1"
    found += each("kafka-topics", members)
    for group, more in (
        ("classic-members", ""),
        ("consumer-members", " --consumer-property group.protocol=consumer"),
    ):
        found += each("&kafka-console-consumer", f"--group {group} --topic kept-one{more}")
        found += each("kafka-consumer-groups", _ABOUT_MEMBERS.format(group=group))
    found += each("kafka-consumer-groups", _RESETS)
    found += [
        Command(
            "!kafka-verifiable-producer",
            "--bootstrap-server {bootstrap} --topic verified-one --max-messages 20",
        ),
        Command(
            "kafka-verifiable-consumer",
            "--bootstrap-server {bootstrap} --topic verified-one --max-messages 20"
            " --group-id verified --reset-policy earliest",
        ),
        Command(
            "kafka-verifiable-consumer",
            "--bootstrap-server {bootstrap} --topic verified-one --max-messages 20"
            " --group-id verified-newly --reset-policy earliest --group-protocol consumer",
        ),
    ]
    found += each(
        "kafka-consumer-groups", "--describe --group verified\n--describe --group verified-newly"
    )
    return found


def transaction_commands() -> list[Command]:
    """One transaction that is over, and one that is not: producers that end it at their end."""
    create = "--create --partitions 1 --replication-factor 1 --topic"
    found = each("kafka-topics", f"{create} moved-one\n{create} held-one")
    perf = "--transaction-duration-ms 600000 --record-size"
    # It sends as fast as it can for its first millisecond, but then for one record at a time only.
    one_at_a_time = "900000 --command-property buffer.memory=1000000"
    found += each(
        "kafka-producer-perf-test",
        f"--topic moved-one {perf} 50 --num-records 40 --throughput 400"
        " --transactional-id meant-well",
    )
    found += each("kafka-get-offsets", "--topic moved-one")  # its markers come after the reply
    found += each("kafka-transactions", _TRANSACTIONS.format(id="meant-well", topic="moved-one"))
    found += each(
        "&kafka-producer-perf-test",
        f"--topic held-one {perf} {one_at_a_time} --num-records 99 --throughput 0.01"
        " --transactional-id meant-long",
    )
    found += each("kafka-transactions", _TRANSACTIONS.format(id="meant-long", topic="held-one"))
    found += each("kafka-transactions", _ENDS)
    return found
