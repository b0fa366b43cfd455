"""`runnel quota`: how much clients may use, by user, client-id or address."""

import math
import re
from typing import Annotated, Final

import typer

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
    show_json,
    show_line,
    show_table,
)
from runnel.cli.pairs import assignments
from runnel.client import quotas
from runnel.client.quotas import Names

app = typer.Typer(help="List, set and remove what clients may use.", no_args_is_help=True)

QUOTAS: Final = {
    "producer_byte_rate": "bytes produced a second",
    "consumer_byte_rate": "bytes fetched a second",
    "request_percentage": "percent of the broker's time",
    "controller_mutation_rate": "partitions created and deleted a second",
    "connection_creation_rate": "new connections a second, of an address",
}
BYTE_RATES: Final = ("producer_byte_rate", "consumer_byte_rate")
UNITS: Final = {
    "": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30
}  # fmt: skip
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")

User = Annotated[str | None, typer.Option("--user", "-u", metavar="NAME", help="This user.")]
ClientId = Annotated[
    str | None, typer.Option("--client-id", "-c", metavar="ID", help="Clients with this id.")
]
Address = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="This address.")]
AnyUser = Annotated[
    bool,
    typer.Option("--default-user", metavar="", help="Every user without a quota of its own."),
]
AnyClientId = Annotated[
    bool,
    typer.Option("--default-client-id", metavar="", help="Every client-id without one."),
]
AnyAddress = Annotated[
    bool, typer.Option("--default-ip", metavar="", help="Every address without one.")
]


@app.command(
    name="list",
    epilog=examples(
        "runnel quota list", "runnel quota list --user alice", "runnel quota list --default-user"
    ),
)
def list_quotas(
    user: User = None,
    default_user: AnyUser = False,
    client_id: ClientId = None,
    default_client_id: AnyClientId = False,
    ip: Address = None,
    default_ip: AnyAddress = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show quotas, all or those that name a user, a client-id or an address."""
    names = _names(user, default_user, client_id, default_client_id, ip, default_ip)
    with connected(bootstrap_server) as cluster:
        found = quotas.describe(cluster, names)
    if as_json:
        show_json([{"entity": quota.entity, "quotas": quota.values} for quota in found])
    elif found:
        show_table(
            ("entity", "quota", "value", "of"),
            [
                (_subject(quota.entity), key, _shown(value), QUOTAS.get(key, ""))
                for quota in found
                for key, value in quota.values.items()
            ],
        )
    else:
        note("no quotas; 'runnel quota set --client-id ID producer_byte_rate=1MB' sets one")


@app.command(
    name="set",
    epilog=examples(
        "runnel quota set --client-id loader producer_byte_rate=1MB consumer_byte_rate=2MB",
        "runnel quota set --user alice --default-client-id request_percentage=20",
        "runnel quota set --default-user controller_mutation_rate=5",
        "runnel quota set --ip 10.0.0.7 connection_creation_rate=10",
    ),
)
def set_values(
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help=f"One or more of {', '.join(QUOTAS)}. Byte rates may have a unit: KB, MiB, ...",
        ),
    ],
    user: User = None,
    default_user: AnyUser = False,
    client_id: ClientId = None,
    default_client_id: AnyClientId = False,
    ip: Address = None,
    default_ip: AnyAddress = False,
    validate_only: ValidateOnly = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Limit what clients may use. It holds at once, also for those that are connected."""
    names = _someone(_names(user, default_user, client_id, default_client_id, ip, default_ip))
    wanted = {key: _amount(key, text) for key, text in assignments("set", values).items()}
    with connected(bootstrap_server) as cluster:
        quotas.alter(cluster, names, wanted, validate_only=validate_only)
    if as_json:
        show_json({"entity": names, "quotas": wanted, "set": not validate_only})
        return
    told = ", ".join(f"{key}={_shown(value)}" for key, value in wanted.items())
    show_line(f"{'could set' if validate_only else 'set'} {told} for {_subject(names)}")


@app.command(
    epilog=examples(
        "runnel quota remove --client-id loader producer_byte_rate",
        "runnel quota remove --user alice --yes",
    )
)
def remove(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which quotas; without a name, all of them."),
    ] = None,
    user: User = None,
    default_user: AnyUser = False,
    client_id: ClientId = None,
    default_client_id: AnyClientId = False,
    ip: Address = None,
    default_ip: AnyAddress = False,
    yes: Yes = False,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Take quotas of a user, a client-id or an address away. Asks first."""
    names = _someone(_names(user, default_user, client_id, default_client_id, ip, default_ip))
    subject = _subject(names)
    with connected(bootstrap_server) as cluster:
        found = [quota for quota in quotas.describe(cluster, names) if quota.entity == names]
        held = list(found[0].values) if found else []
        missing = [key for key in keys or () if key not in held]
        if missing or not held:
            what = missing[0] if missing else "quota"
            raise CommandError(f"{subject} has no {what}: 'runnel quota list' shows what there is.")
        gone = list(dict.fromkeys(keys or held))
        confirm(f"Remove {', '.join(gone)} of {subject}?", yes)
        quotas.alter(cluster, names, dict.fromkeys(gone))
    if as_json:
        show_json({"entity": names, "removed": gone})
    else:
        show_line(f"removed {', '.join(gone)} of {subject}")


def _names(
    user: str | None,
    default_user: bool,
    client_id: str | None,
    default_client_id: bool,
    ip: str | None,
    default_ip: bool,
) -> dict[str, str | None]:
    names: dict[str, str | None] = {}
    for kind, name, default in (
        ("user", user, default_user),
        ("client-id", client_id, default_client_id),
        ("ip", ip, default_ip),
    ):
        if name is not None and default:
            raise CommandError(f"--{kind} and --default-{kind} exclude each other: leave one out.")
        if name is not None or default:
            names[kind] = name
    return names


def _someone(names: dict[str, str | None]) -> dict[str, str | None]:
    if not names:
        raise CommandError("Whose quotas? Give --user, --client-id or --ip, or --default-user...")
    return names


def _subject(names: Names) -> str:
    return ", ".join(
        f"every {kind}" if name is None else f"{kind} {name}" for kind, name in names.items()
    )


def _amount(key: str, text: str) -> float:
    if key not in QUOTAS:
        raise CommandError(f"There is no quota {key!r}: choose among {', '.join(QUOTAS)}.")
    found = _AMOUNT.fullmatch(text.strip())
    unit = UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None or (unit != 1 and key not in BYTE_RATES):
        example = "1048576 or 1MB" if key in BYTE_RATES else "12.5"
        raise CommandError(f"{key} wants a number above 0, as {example}, not {text!r}.")
    value = float(found[1]) * unit
    if not 0 < value < math.inf:
        raise CommandError(f"{key} must be greater than 0.")
    return value


def _shown(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else f"{value:g}"
