"""`runnel config`: look at and change the settings of topics and brokers while they run."""

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from runnel.cli.connecting import connected
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandError,
    ValidateOnly,
    examples,
    note,
    sentence,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.pairs import assignments
from runnel.client import admin
from runnel.client.admin import ConfigSource, ResourceType
from runnel.client.cluster import Cluster
from runnel.config.registry import BROKER, TOPIC, suggestion
from runnel.wire.messages.describe_configs import DescribeConfigsResourceResult

app = typer.Typer(
    help="Describe, set and unset settings of topics and brokers.", no_args_is_help=True
)

ALL_BROKERS: Final = "all"
Topic = Annotated[
    str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Settings of this topic.")
]
Broker = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="ID",
        help=f"Settings of this broker, by its number; '{ALL_BROKERS}' for their common default.",
    ),
]
NAMES: Final = {ResourceType.TOPIC: TOPIC, ResourceType.BROKER: BROKER}
# What was set by somebody, rather than come with the broker.
SET_BY_SOMEBODY: Final = frozenset(ConfigSource) - {
    ConfigSource.DEFAULT_CONFIG,
    ConfigSource.UNKNOWN,
}


@app.command(
    epilog=examples(
        "runnel config describe --topic orders",
        "runnel config describe --topic orders --all",
        "runnel config describe --broker 0 num.io.threads log.dirs",
    )
)
def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these settings.")
    ] = None,
    topic: Topic = None,
    broker: Broker = None,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", metavar="", help="Also those that nobody has set.")
    ] = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show settings, their values, and where each value comes from."""
    kind, name = _resource(topic, broker)
    with connected(bootstrap_server) as cluster:
        found = admin.describe_configs(cluster, kind, name, names)
    _ensure_among(names or [], found, kind)
    rows = [row for row in found if names or show_all or row.config_source in SET_BY_SOMEBODY]
    if as_json:
        show_json([_document(row) for row in rows])
    elif rows:
        columns = ("name", "value", "source", "read only")
        show_table(columns, [(row.name, _value(row), _source(row), row.read_only) for row in rows])
    else:
        note("all settings have their defaults; --all shows them")


@app.command(
    name="set",
    epilog=examples(
        "runnel config set --topic orders retention.ms=3600000 max.message.bytes=2000000",
        "runnel config set --broker all message.max.bytes=2000000",
    ),
)
def set_values(
    values: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="What to set to which value.")
    ],
    topic: Topic = None,
    broker: Broker = None,
    validate_only: ValidateOnly = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Set settings of a topic or a broker. They hold at once."""
    wanted: dict[str, str | None] = dict(assignments("set", values))
    _alter(topic, broker, wanted, validate_only, bootstrap_server, as_json)


@app.command(
    epilog=examples(
        "runnel config unset --topic orders retention.ms",
        "runnel config unset --broker 0 log.retention.ms",
    )
)
def unset(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Whose own value to take away.")
    ],
    topic: Topic = None,
    broker: Broker = None,
    validate_only: ValidateOnly = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Take the value of settings away, so that the default holds again."""
    wanted: dict[str, str | None] = dict.fromkeys(names)
    _alter(topic, broker, wanted, validate_only, bootstrap_server, as_json)


def changes(values: dict[str, str | None]) -> str:
    """What is set and taken away, in a few words."""
    return ", ".join(
        f"{key} back to its default" if text is None else f"{key}={text}"
        for key, text in values.items()
    )


def _alter(
    topic: str | None,
    broker: str | None,
    values: dict[str, str | None],
    validate_only: bool,
    bootstrap_server: str,
    as_json: bool,
) -> None:
    kind, name = _resource(topic, broker)
    with connected(bootstrap_server) as cluster:
        ensure_known(cluster, kind, name, values)
        admin.alter_configs(cluster, kind, name, values, validate_only=validate_only)
    if as_json:
        resource = {"topic": topic} if topic is not None else {"broker": broker}
        show_json({**resource, "altered": not validate_only, "configs": values})
        return
    subject = topic if topic is not None else f"broker {broker}" if name else "all brokers"
    show_line(f"{'could alter' if validate_only else 'altered'} {subject}: {changes(values)}")


def _resource(topic: str | None, broker: str | None) -> tuple[ResourceType, str]:
    if (topic is None) == (broker is None):
        raise CommandError("Whose settings? Give either --topic TOPIC or --broker ID.")
    if topic is not None:
        return ResourceType.TOPIC, topic
    assert broker is not None
    if broker == ALL_BROKERS:
        return ResourceType.BROKER, ""
    if not broker.isdecimal():
        raise CommandError(f"--broker wants a number or '{ALL_BROKERS}', not {broker!r}.")
    return ResourceType.BROKER, broker


def ensure_known(
    cluster: Cluster, kind: ResourceType, name: str, values: Mapping[str, str | None]
) -> None:
    """Raises CommandError for a name to take away that nobody knows: brokers, as Kafka, take it.

    One that we do not know, but the cluster does, is of a newer version, and may go.
    """
    foreign = [key for key in sorted(values) if values[key] is None and key not in NAMES[kind]]
    if foreign:
        if kind == ResourceType.BROKER and not name:  # the default of all names what is set alone
            name = str(cluster.node_ids()[0])
        _ensure_among(foreign, admin.describe_configs(cluster, kind, name, foreign), kind)


def _ensure_among(
    names: list[str], found: list[DescribeConfigsResourceResult], kind: ResourceType
) -> None:
    missing = sorted(set(names) - {row.name for row in found})
    if missing:
        hint = suggestion(missing[0], NAMES[kind])
        what = sentence(f"There is no setting {missing[0]} here{hint}")
        raise CommandError(f"{what} 'runnel config describe --all' shows those there are.")


def _value(row: DescribeConfigsResourceResult) -> str:
    return "(hidden)" if row.is_sensitive else "" if row.value is None else row.value


def _source(row: DescribeConfigsResourceResult) -> str:
    try:
        name = ConfigSource(row.config_source).name
    except ValueError:  # of a broker newer than we are
        return str(row.config_source)
    return name.removesuffix("_CONFIG").lower().replace("_", " ")


def _document(row: DescribeConfigsResourceResult) -> dict[str, object]:
    return {
        "name": row.name,
        "value": row.value,
        "source": _source(row),
        "read_only": row.read_only,
        "sensitive": row.is_sensitive,
    }
