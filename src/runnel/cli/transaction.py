"""`runnel transaction`: list, describe and abort transactions; find those that hang."""

import time
from typing import Annotated, Any

import typer

from runnel.cli.connecting import connected
from runnel.cli.moments import duration_ms
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandError,
    Yes,
    confirm,
    examples,
    note,
    show_fields,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.partitions import partitions_of
from runnel.cli.transaction_views import document_of, open_document, show_open
from runnel.client import admin, transactions
from runnel.client.cluster import Cluster
from runnel.client.hanging import (
    abort_open,
    hanging_transactions,
    open_transactions,
)
from runnel.types import TopicPartition

app = typer.Typer(
    help="List, describe and abort transactions; find those that nobody will end.",
    no_args_is_help=True,
)


@app.command(
    name="list",
    epilog=examples(
        "runnel transaction list",
        "runnel transaction list --state Ongoing --longer-than 5m",
        "runnel transaction list --pattern 'copy-.*' --json",
    ),
)
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only those in this state: Ongoing, Empty, PrepareCommit, PrepareAbort,"
            " CompleteCommit, CompleteAbort, Dead; can be repeated.",
        ),
    ] = None,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than",
            metavar="DURATION",
            help="Only those open for longer than 90s, 15m, 2h.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern", metavar="REGEX", help="Only ids that this regular expression matches."
        ),
    ] = None,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """List the transactional ids in use and the states of their transactions."""
    longer_ms = (
        transactions.NO_DURATION
        if longer_than is None
        else duration_ms("--longer-than", longer_than)
    )
    with connected(bootstrap_server) as cluster:
        found = transactions.list_transactions(
            cluster, state or (), duration_ms=longer_ms, pattern=pattern
        )
    if as_json:
        names = ("transactional_id", "coordinator", "producer_id", "state")
        show_json([dict(zip(names, row, strict=True)) for row in found])
    elif found:
        show_table(("transactional id", "coordinator", "producer", "state"), found)
    else:
        note("no such transactions" if state or longer_than or pattern else "no transactions")


@app.command(
    epilog=examples(
        "runnel transaction describe copy-1", "runnel transaction describe copy-1 --json"
    )
)
def describe(
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", help="One or more transactional ids.")
    ],
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show a transaction: its producer, its state, how long it is open, what it writes to."""
    with connected(bootstrap_server) as cluster:
        found = [transactions.describe_transaction(cluster, name) for name in dict.fromkeys(names)]
    documents = [document_of(each) for each in found]
    if as_json:
        show_json(documents)
        return
    for at, document in enumerate(documents):
        if at:
            show_line("")
        partitions = [f"{row['topic']}:{row['partition']}" for row in document["partitions"]]
        fields = {**document, "partitions": ", ".join(partitions) or "-"}
        show_fields({name.replace("_", " "): cell for name, cell in fields.items()})


@app.command(
    epilog=examples(
        "runnel transaction abort copy-1",
        "runnel transaction abort --topic orders:0 --start-offset 1042",
    )
)
def abort(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The transactional id to take away.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC:PARTITION",
            help="End a hanging transaction in this partition only.",
        ),
    ] = None,
    start_offset: Annotated[
        int | None,
        typer.Option(
            "--start-offset", min=0, help="Where it begins, as 'find-hanging' shows; with --topic."
        ),
    ] = None,
    yes: Yes = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Abort an open transaction. Asks first.

    By its transactional id: its records are given up and its producer is fenced. By partition and
    offset: for one that hangs, which no coordinator would ever end.
    """
    if (name is None) == (topic is None) or (topic is None) != (start_offset is None):
        raise CommandError(
            "Say which: a transactional id, or --topic TOPIC:PARTITION with --start-offset."
        )
    with connected(bootstrap_server) as cluster:
        if name is not None:
            document = _abort_by_id(cluster, name, yes)
        else:
            document = _abort_in_partition(cluster, topic or "", start_offset, yes)
    if as_json:
        show_json(document)
    else:
        where = name or f"the transaction at {topic}, offset {start_offset}"
        show_line(f"aborted {where}")


@app.command(
    name="find-hanging",
    epilog=examples(
        "runnel transaction find-hanging",
        "runnel transaction find-hanging --topic orders --longer-than 1h",
    ),
)
def find_hanging(
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:PARTITIONS]",
            help="Where to look, else everywhere; can be repeated.",
        ),
    ] = None,
    longer_than: Annotated[
        str,
        typer.Option(
            "--longer-than",
            metavar="DURATION",
            help="Only those silent for longer than the longest time-out of a transaction.",
        ),
    ] = "15m",
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Find transactions that hold a partition open and that no coordinator will end."""
    now_ms = time.time_ns() // 1_000_000
    silent_since_ms = now_ms - duration_ms("--longer-than", longer_than)
    with connected(bootstrap_server) as cluster:
        where = partitions_of(cluster, "--topic", topic) if topic else _all_partitions(cluster)
        found = hanging_transactions(cluster, where, silent_since_ms=silent_since_ms)
    if as_json:
        show_json([open_document(row) for row in found])
    elif found:
        show_open(found)
        note("'runnel transaction abort --topic T:P --start-offset N' ends one")
    else:
        note("no hanging transactions")


def _abort_by_id(cluster: Cluster, name: str, yes: bool) -> dict[str, Any]:
    found = transactions.describe_transaction(cluster, name)
    if not found.is_open:
        raise CommandError(f"{name} has no open transaction; its last one is {found.state}.")
    confirm(f"Abort the transaction of {name} and fence its producer?", yes)
    transactions.fence(cluster, name)
    return {"aborted": name, "producer_id": found.producer_id}


def _abort_in_partition(
    cluster: Cluster, topic: str, start_offset: int | None, yes: bool
) -> dict[str, Any]:
    partitions = partitions_of(cluster, "--topic", [topic])
    if len(partitions) != 1:
        raise CommandError("--topic wants one partition here, such as orders:0.")
    found = [
        row for row in open_transactions(cluster, partitions) if row.start_offset == start_offset
    ]
    if not found:
        raise CommandError(
            f"no transaction is open in {partitions[0]} from offset {start_offset}:"
            " 'runnel transaction find-hanging' shows those that hang."
        )
    confirm(f"Abort the transaction in {topic} that began at offset {start_offset}?", yes)
    abort_open(cluster, found[0])
    return {"aborted": open_document(found[0])}


def _all_partitions(cluster: Cluster) -> list[TopicPartition]:
    return [
        TopicPartition(row.name or "", partition.partition_index)
        for row in admin.topics(cluster)
        for partition in row.partitions
    ]
