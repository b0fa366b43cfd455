"""`runnel group`: list, describe and delete consumer groups; see also `cli.group_reset`."""

from typing import Annotated

import typer

from runnel.cli.connecting import connected
from runnel.cli.group_reset import RESET_EXAMPLES, reset
from runnel.cli.group_views import (
    described,
    member_documents,
    show_lags,
    show_members,
    show_state,
    state_document,
)
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandError,
    Yes,
    confirm,
    examples,
    note,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.partitions import partitions_of
from runnel.client import groups
from runnel.client.group_lag import lags_of
from runnel.client.group_offsets import delete_offsets

app = typer.Typer(
    help="List, describe, reset and delete consumer groups, and see how far they are behind.",
    no_args_is_help=True,
)
app.command(epilog=RESET_EXAMPLES)(reset)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
Names = Annotated[list[str], typer.Argument(metavar="GROUP...", help="One or more group names.")]


@app.command(
    name="list",
    epilog=examples(
        "runnel group list",
        "runnel group list --state Stable --state PreparingRebalance",
        "runnel group list --type consumer --json",
    ),
)
def list_groups(
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only groups in this state: Empty, Stable, PreparingRebalance,"
            " CompletingRebalance, Assigning, Reconciling, Dead; can be repeated.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help="Only groups of this type: classic, consumer, share."
        ),
    ] = None,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """List the groups with their type and state."""
    with connected(bootstrap_server) as cluster:
        found = groups.list_groups(cluster, state or (), kind or ())
    if as_json:
        names = ("group", "type", "state", "protocol")
        show_json([dict(zip(names, row, strict=True)) for row in found])
    elif found:
        show_table(("group", "type", "state", "protocol"), found)
    else:
        note("no such groups" if state or kind else "no groups; one is made when a consumer joins")


@app.command(
    epilog=examples(
        "runnel group describe billing",
        "runnel group describe billing --members",
        "runnel group describe billing --json",
    )
)
def describe(
    names: Names,
    members: Annotated[
        bool, typer.Option("--members", metavar="", help="Show its members and what they own.")
    ] = False,
    state: Annotated[
        bool, typer.Option("--state", metavar="", help="Show the group itself only: no offsets.")
    ] = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show the lag of every partition, who owns it, and how far the group is behind in all.

    The JSON has members and partitions, unless --members or --state asks for less.
    """
    if members and state:
        raise CommandError("--members and --state contradict each other: leave one out.")
    documents = []
    with connected(bootstrap_server) as cluster:
        for at, name in enumerate(dict.fromkeys(names)):
            group = groups.describe_group(cluster, name)
            lags = None if members or state else lags_of(cluster, group)
            if as_json:
                document = state_document(group) if state else member_documents(group)
                documents.append(document if lags is None else described(group, lags))
                continue
            if at:
                show_line("")
            show_state(group, lags)
            if members:
                show_members(group)
            elif lags is not None:
                show_lags(lags)
    if as_json:
        show_json(documents)


@app.command(
    epilog=examples("runnel group delete billing", "runnel group delete billing audit --yes")
)
def delete(
    names: Names,
    yes: Yes = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Delete groups without members, with all their offsets. Asks first."""
    names = list(dict.fromkeys(names))
    with connected(bootstrap_server) as cluster:
        for name in names:  # all can be deleted, or none is
            group = groups.describe_group(cluster, name)
            if group.members:
                raise CommandError(
                    f"group {name} has {len(group.members)} members: stop them first;"
                    f" 'runnel group describe {name} --members' shows where they run."
                )
        confirm(f"Delete {', '.join(names)} with all committed offsets?", yes)
        for name in names:
            groups.delete_group(cluster, name)
            if not as_json:
                show_line(f"deleted {name}")
    if as_json:
        show_json({"deleted": names})


@app.command(
    name="delete-offsets",
    epilog=examples(
        "runnel group delete-offsets billing --topic orders",
        "runnel group delete-offsets billing --topic orders:0,1 --yes",
    ),
)
def forget_offsets(
    name: Name,
    topic: Annotated[
        list[str],
        typer.Option(
            "--topic", "-t", metavar="TOPIC[:PARTITIONS]", help="Of what; can be repeated."
        ),
    ],
    yes: Yes = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Forget what a group has committed for a topic that none of its members reads. Asks first."""
    with connected(bootstrap_server) as cluster:
        groups.describe_group(cluster, name)
        partitions = partitions_of(cluster, "--topic", topic)
        confirm(f"Delete the offsets of {name} for {', '.join(topic)}?", yes)
        delete_offsets(cluster, name, partitions)
    if as_json:
        rows = [{"topic": at.topic, "partition": at.index} for at in partitions]
        show_json({"group": name, "deleted": rows})
    else:
        show_line(f"deleted the offsets of {name} for {', '.join(map(str, partitions))}")
