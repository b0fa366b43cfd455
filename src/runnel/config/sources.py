"""Where values come from, and which one wins: a file, variables, our own variables, flags.

Everything becomes a flat map of the registry's names to text. Names are checked here, so that a
message can say which flag, variable or line held the wrong one. Within one source two spellings of
one setting must agree; a later source silently wins over an earlier one, also where it names the
same thing otherwise (`log.retention.hours` of a flag over `log.retention.ms` of a file).
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from runnel.config.definition import ConfigError
from runnel.config.files import Given, read_file
from runnel.config.registry import BROKER, is_sensitive, suggestion
from runnel.config.spellings import (
    ADDRESS,
    ADVERTISED,
    FAMILIAR,
    HOST,
    PORT,
    VARIABLES,
    Meant,
    meant_by,
)
from runnel.config.support import BROKER_SYNONYMS

ENVIRONMENT_PREFIX: Final = "RUNNEL_"
# Of the other commands: no settings of a broker.
NOT_SETTINGS: Final = frozenset({"RUNNEL_BOOTSTRAP_SERVER", "RUNNEL_METRICS_URL"})
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = "9092"

# Kubernetes gives every pod such variables for a service named runnel; they are not settings.
_SERVICE_LINK = re.compile(
    r"RUNNEL_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_TYPED: Final = frozenset({"boolean", "short", "int", "long", "double"})
_PER_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")
# Names for one thing: a later source that sets one of them takes the place of all.
_ONE_THING = (
    *BROKER_SYNONYMS,
    ("node.id", "broker.id"),
    ("log.dirs", "log.dir"),
)
_PART_NAMES = {
    HOST: "the host to listen on",
    PORT: "the port to listen on",
    ADVERTISED: "the host that clients are told",
}


class Gathered(NamedTuple):
    values: dict[str, str]
    warnings: list[str]


def gather(flags: Mapping[str, str], environ: Mapping[str, str], file: Path | None) -> Gathered:
    """Text by name, unknown names and contradictions refused. Raises ConfigError."""
    values: dict[str, str] = {}
    plain = _plain_variables(environ)
    for source in (
        read_file(file) if file else [],
        plain,
        _own_variables(environ),
        [Given(name, text, _flag(name)) for name, text in flags.items()],
    ):
        _lay_over(values, _settled(source))
    _listeners(values)
    _advertised(values)
    warnings = [
        f"{given.origin} is used, it sets {_PART_NAMES.get(name, name)}"
        for given in plain
        for name in [VARIABLES[given.spelling].name]
    ]
    return Gathered(values, warnings)


def _flag(name: str) -> str:
    return f"flag {name}" if name.startswith("-") else f"--set {name[:200]}"


def _plain_variables(environ: Mapping[str, str]) -> list[Given]:
    return [
        Given(variable, environ[variable], f"variable {variable}")
        for variable in sorted(VARIABLES)
        if environ.get(variable, "").strip()
    ]


def _own_variables(environ: Mapping[str, str]) -> list[Given]:
    found: list[Given] = []
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in NOT_SETTINGS:
            continue
        text = environ[variable]
        if _SERVICE_LINK.fullmatch(variable) or text.startswith(("tcp://", "udp://")):
            continue
        found.append(Given(variable, text, f"variable {variable}"))
    return found


def _settled(source: Iterable[Given]) -> dict[str, str]:
    """One source by the registry's names. Raises ConfigError."""
    values: dict[str, str] = {}
    first: dict[str, Given] = {}
    for given in source:
        for name, text in _understood(given):
            if name in first and not _same(name, values[name], text):
                shown = (
                    "" if is_sensitive(name) else f", to {values[name][:100]!r} and {text[:100]!r}"
                )
                raise _both(first[name], given, f"set {_PART_NAMES.get(name, name)}{shown}")
            first.setdefault(name, given)
            values[name] = text
    for part in (HOST, PORT):
        if part in values and "listeners" in values:
            raise _both(first["listeners"], first[part], "say where to listen")
    if ADVERTISED in values and "advertised.listeners" in values:
        both = first["advertised.listeners"], first[ADVERTISED]
        raise _both(*both, "say what clients are told")
    return values


def _both(one: Given, other: Given, what: str) -> ConfigError:
    shown = [
        given.origin if given.spelling in given.origin else f"{given.spelling} ({given.origin})"
        for given in (one, other)
    ]
    return ConfigError(f"{shown[0]} and {shown[1]} both {what}; remove one of them")


def _understood(given: Given) -> list[tuple[str, str]]:
    if _PER_LISTENER.fullmatch(given.spelling):
        return [(given.spelling, given.text)]
    meant = _meant(given)
    text = given.text
    if given.typed is not None and _is_typed(meant.name):
        text = given.typed
    try:
        text = meant.convert(text)
        if meant.name != ADDRESS:
            return [(meant.name, text)]
        host, port = _split(text)
        return [(HOST, host), (PORT, port)]
    except ConfigError as error:
        raise ConfigError(f"{given.origin}: {error}") from None


def _is_typed(name: str) -> bool:
    """Whether YAML's reading of a value is the meant one: `no` is a good name of a rack."""
    return name == PORT or (name in BROKER and BROKER[name].type in _TYPED)


def _meant(given: Given) -> Meant:
    spelling = given.spelling
    if given.origin != f"variable {spelling}":
        found = meant_by(spelling.removeprefix("--"))
        hints: list[tuple[str, Iterable[str]]] = [
            (spelling, BROKER),
            (spelling.replace("-", "_"), FAMILIAR),
        ]
    elif spelling in VARIABLES:
        return VARIABLES[spelling]
    else:
        lower = spelling.removeprefix(ENVIRONMENT_PREFIX).lower()
        dotted = lower.replace("_", ".")
        found = meant_by(lower)
        hints = [(dotted, BROKER), (f"runnel.{dotted}", BROKER), (lower, FAMILIAR)]
    if found is None:
        hint = next(filter(None, (suggestion(name, names) for name, names in hints)), "")
        raise ConfigError(f"Unknown configuration {spelling[:200]!r} in {given.origin}{hint}")
    return found


def _same(name: str, one: str, other: str) -> bool:
    if name not in BROKER:
        return one.strip() == other.strip()
    return BROKER[name].parse(one) == BROKER[name].parse(other)


def _lay_over(values: dict[str, str], source: Mapping[str, str]) -> None:
    for names in _ONE_THING:
        if any(name in source for name in names):
            for name in names:
                values.pop(name, None)
    if "listeners" in source:
        values.pop(HOST, None)
        values.pop(PORT, None)
    elif HOST in source or PORT in source:  # half an address leaves the other half
        values.pop("listeners", None)
    if "advertised.listeners" in source:
        values.pop(ADVERTISED, None)
    elif ADVERTISED in source:
        values.pop("advertised.listeners", None)
    values |= source


def _listeners(values: dict[str, str]) -> None:
    """Makes one setting of the parts of an address."""
    if HOST not in values and PORT not in values:
        return
    host = values.pop(HOST, DEFAULT_HOST).strip().removeprefix("[").removesuffix("]")
    port = values.pop(PORT, DEFAULT_PORT).strip()
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise ConfigError(f"{port[:100]!r} is not a port: it must be between 0 and 65535")
    values["listeners"] = f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}"


def _advertised(values: dict[str, str]) -> None:
    """`host`, or `host:port` where the port is another outside. Raises ConfigError."""
    if ADVERTISED not in values:
        return
    told = values.pop(ADVERTISED).strip()
    listeners = values.get("listeners", f"PLAINTEXT://:{DEFAULT_PORT}").split(",")
    if len(listeners) > 1:
        raise ConfigError(
            "--advertised-host is for one listener, and there are several; name the address of each"
            " in advertised.listeners"
        )
    name, _, bound = listeners[0].partition("://")
    if told.startswith("["):
        host, _, port = told[1:].partition("]")
        port = port.removeprefix(":")
    elif told.count(":") == 1:
        host, _, port = told.partition(":")
    else:  # a name, or an address of IPv6 without a port
        host, port = told, ""
    if not host:
        raise ConfigError(f"--advertised-host: {told[:200]!r} names no host")
    port = port or bound.rpartition(":")[2]
    values["advertised.listeners"] = f"{name}://{f'[{host}]' if ':' in host else host}:{port}"


def _split(address: str) -> tuple[str, str]:
    host, colon, port = address.strip().rpartition(":")
    if not colon:
        raise ConfigError(f"{address[:200]!r} is not an address; write host:port")
    return host, port
