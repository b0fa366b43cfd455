"""`runnel topic`: create, list, describe, alter, delete topics, and add partitions to them."""

from typing import Annotated, Any, Final

import typer

from runnel.cli.config import changes, ensure_known
from runnel.cli.connecting import connected
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandError,
    ValidateOnly,
    Yes,
    confirm,
    examples,
    note,
    show_fields,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.pairs import assignments
from runnel.client import admin
from runnel.client.admin import EARLIEST, LATEST, ConfigSource, ResourceType
from runnel.client.cluster import Cluster
from runnel.storage.checkpoints import encode_id
from runnel.wire.messages.metadata import MetadataResponseTopic

app = typer.Typer(
    help="Create, list, describe, alter and delete topics; add partitions.", no_args_is_help=True
)

INT16_MAX: Final = (1 << 15) - 1  # what a request has room for
INT32_MAX: Final = (1 << 31) - 1
Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="One or more topic names.")]
Config = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="A topic setting; can be repeated."),
]


@app.command(
    epilog=examples(
        "runnel topic create orders",
        "runnel topic create orders --partitions 6 --config retention.ms=86400000",
        "runnel topic create users -c cleanup.policy=compact --if-not-exists",
    )
)
def create(
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, max=INT32_MAX, help="How many; else the broker's default."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            max=INT16_MAX,
            help="Copies of each; else the broker's default.",
        ),
    ] = None,
    config: Config = None,
    if_not_exists: Annotated[
        bool,
        typer.Option("--if-not-exists", metavar="", help="Succeed if the topic is there already."),
    ] = False,
    validate_only: ValidateOnly = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Create a topic."""
    configs = assignments("--config", config)
    with connected(bootstrap_server) as cluster:
        if if_not_exists and name in {row.name for row in admin.topics(cluster)}:
            _tell(as_json, f"{name} is there already", {"topic": name, "created": False})
            return
        result = admin.create_topic(
            cluster,
            name,
            partitions or admin.BROKERS_CHOICE,
            replication_factor or admin.BROKERS_CHOICE,
            configs,
            validate_only=validate_only,
        )
    count = result.num_partitions
    document: dict[str, object] = {
        "topic": name,
        "topic_id": encode_id(result.topic_id),
        "partitions": count,
        "replication_factor": result.replication_factor,
        "created": not validate_only,
    }
    done = "could create" if validate_only else "created"
    _tell(as_json, f"{done} {name} with {_partitions(count)}", document)


@app.command(name="list", epilog=examples("runnel topic list", "runnel topic list --json"))
def list_topics(bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """List the topics with their partitions and replicas."""
    with connected(bootstrap_server) as cluster:
        found = admin.topics(cluster)
    rows = [(row.name, len(row.partitions), _replication_factor(row)) for row in found]
    if as_json:
        names = ("topic", "partitions", "replication_factor")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    elif rows:
        show_table(("topic", "partitions", "replicas"), rows)
    else:
        note("no topics yet; 'runnel topic create NAME' makes one")


@app.command(
    epilog=examples("runnel topic describe orders", "runnel topic describe orders users --json")
)
def describe(
    names: Names,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show partitions, leaders, offsets and the settings that differ from the broker's."""
    with connected(bootstrap_server) as cluster:
        documents = [_description(cluster, row) for row in admin.topics(cluster, names)]
    if as_json:
        show_json(documents)
        return
    for at, document in enumerate(documents):
        if at:
            show_line("")
        _show_description(document)


@app.command(
    epilog=examples(
        "runnel topic alter orders --config retention.ms=3600000",
        "runnel topic alter orders --delete-config retention.ms",
    )
)
def alter(
    name: Name,
    config: Config = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete-config",
            "-d",
            metavar="NAME",
            help="A setting to take away, so that the broker's holds again; can be repeated.",
        ),
    ] = None,
    validate_only: ValidateOnly = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Set or take away settings of a topic."""
    values: dict[str, str | None] = dict(assignments("--config", config))
    for key in delete_config or ():
        if key in values:
            raise CommandError(f"{key} is in --config and in --delete-config: leave one out.")
        values[key] = None
    if not values:
        raise CommandError("Nothing to alter: give --config NAME=VALUE or --delete-config NAME.")
    with connected(bootstrap_server) as cluster:
        ensure_known(cluster, ResourceType.TOPIC, name, values)
        admin.alter_configs(cluster, ResourceType.TOPIC, name, values, validate_only=validate_only)
    done = "could alter" if validate_only else "altered"
    document = {"topic": name, "altered": not validate_only, "configs": values}
    _tell(as_json, f"{done} {name}: {changes(values)}", document)


@app.command(
    epilog=examples("runnel topic delete orders", "runnel topic delete orders users --yes")
)
def delete(
    names: Names,
    yes: Yes = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Delete topics and all that is in them. Asks first."""
    names = list(dict.fromkeys(names))
    with connected(bootstrap_server) as cluster:
        admin.topics(cluster, names)  # all are there, or none is deleted
        confirm(f"Delete {', '.join(names)} with all records?", yes)
        for name in names:
            admin.delete_topic(cluster, name)
            if not as_json:
                show_line(f"deleted {name}")
    if as_json:
        show_json({"deleted": names})


@app.command(
    name="add-partitions",
    epilog=examples("runnel topic add-partitions orders --partitions 12"),
)
def add_partitions(
    name: Name,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", min=1, max=INT32_MAX, help="How many there shall be, old and new."
        ),
    ],
    validate_only: ValidateOnly = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Give a topic more partitions. Records stay where they are; new keys may go elsewhere."""
    with connected(bootstrap_server) as cluster:
        admin.add_partitions(cluster, name, partitions, validate_only=validate_only)
    done = "could have" if validate_only else "has"
    document = {"topic": name, "partitions": partitions, "added": not validate_only}
    _tell(as_json, f"{name} {done} {_partitions(partitions)}", document)


def _description(cluster: Cluster, topic: MetadataResponseTopic) -> dict[str, Any]:
    name = topic.name or ""
    led = [row.partition_index for row in topic.partitions if row.leader_id >= 0]
    starts = admin.list_offsets(cluster, name, dict.fromkeys(led, EARLIEST))
    ends = admin.list_offsets(cluster, name, dict.fromkeys(led, LATEST))
    return {
        "topic": name,
        "topic_id": encode_id(topic.topic_id),
        "internal": topic.is_internal,
        "replication_factor": _replication_factor(topic),
        "configs": _own_configs(cluster, name),
        "partitions": [
            {
                "partition": row.partition_index,
                "leader": row.leader_id,
                "replicas": row.replica_nodes,
                "in_sync": row.isr_nodes,
                "start_offset": starts.get(row.partition_index),
                "end_offset": ends.get(row.partition_index),
            }
            for row in topic.partitions
        ],
    }


def _own_configs(cluster: Cluster, name: str) -> dict[str, str | None]:
    rows = admin.describe_configs(cluster, ResourceType.TOPIC, name)
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {row.name: row.value for row in rows if row.config_source == own}


def _show_description(document: dict[str, Any]) -> None:
    partitions = document["partitions"]
    configs = ", ".join(f"{key}={text}" for key, text in document["configs"].items())
    show_fields(
        {
            "topic": document["topic"],
            "id": document["topic_id"],
            "partitions": len(partitions),
            "replicas": document["replication_factor"],
            "configs": configs or "the broker's defaults",
        }
    )
    columns = ("partition", "leader", "replicas", "in sync", "start", "end")
    rows = [
        (
            row["partition"],
            row["leader"],
            ",".join(map(str, row["replicas"])),
            ",".join(map(str, row["in_sync"])),
            row["start_offset"],
            row["end_offset"],
        )
        for row in partitions
    ]
    show_table(columns, rows)


def _replication_factor(topic: MetadataResponseTopic) -> int:
    return len(topic.partitions[0].replica_nodes) if topic.partitions else 0


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _tell(as_json: bool, line: str, document: object) -> None:
    if as_json:
        show_json(document)
    else:
        show_line(line)
