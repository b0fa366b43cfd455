"""Where values come from: a file, the environment, flags; each later one wins over the earlier.

Everything becomes a flat map of dotted name to text. Names are checked here, so that a message can
say which source held the wrong one.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from runnel.config.definition import ConfigError
from runnel.config.registry import BROKER, suggestion

MAX_FILE_BYTES = 1 << 20
MAX_DEPTH = 32
ENVIRONMENT_PREFIX = "RUNNEL_"

# Kubernetes gives every pod such variables for a service named runnel; they are not settings.
_SERVICE_LINK = re.compile(
    r"RUNNEL_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_PER_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")


def gather(
    flags: Mapping[str, str], environ: Mapping[str, str], file: Path | None
) -> dict[str, str]:
    """Text by name, unknown names refused. Raises ConfigError."""
    values: dict[str, str] = {}
    sources = (
        (str(file), read_file(file) if file else {}),
        ("the environment", dict(_from_environment(environ))),
        ("the command line", dict(flags)),
    )
    for source, found in sources:
        for name, text in found.items():
            _ensure_known(name, source)
            values[name] = text
    return values


def _ensure_known(name: str, source: str) -> None:
    per_listener = _PER_LISTENER.fullmatch(name)
    if name not in BROKER and not per_listener:
        hint = suggestion(name, BROKER)
        raise ConfigError(f"Unknown configuration {name[:200]!r} in {source}{hint}")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # RUNNEL_DURABILITY first, then RUNNEL_RUNNEL_DURABILITY: the full spelling wins.
    names = {n.removeprefix("runnel.").upper().replace(".", "_"): n for n in BROKER}
    names |= {n.upper().replace(".", "_"): n for n in BROKER}
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        text = environ[variable]
        if _SERVICE_LINK.fullmatch(variable) or text.startswith(("tcp://", "udp://")):
            continue
        key = variable.removeprefix(ENVIRONMENT_PREFIX)
        if key not in names:
            dotted = key.lower().replace("_", ".")
            hint = suggestion(dotted, BROKER) or suggestion(f"runnel.{dotted}", BROKER)
            raise ConfigError(f"Unknown configuration {variable!r} in the environment{hint}")
        yield names[key], text


def read_file(path: Path) -> dict[str, str]:
    """A flat map from YAML, JSON or Java properties, told apart by the suffix."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}") from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None
    match path.suffix:
        case ".yaml" | ".yml":
            tree = _yaml(path, text)
        case ".json":
            tree = _json(path, text)
        case ".properties" | ".conf":
            return parse_properties(text)
        case suffix:
            raise ConfigError(f"{path}: {suffix!r} is none of .yaml, .yml, .json, .properties")
    if not isinstance(tree, dict | None):
        raise ConfigError(f"{path} does not hold names and values")
    flat: dict[str, str] = {}
    for name, value in _flatten("", tree or {}, MAX_DEPTH):
        if name in flat:
            raise ConfigError(f"{path} sets {name} twice")
        flat[name] = value
    return flat


def _yaml(path: Path, text: str) -> object:
    import yaml  # 20 ms, and most brokers have no YAML file

    try:
        tree: object = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {error}") from None
    return tree


def _json(path: Path, text: str) -> object:
    try:
        tree: object = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    return tree


def _flatten(prefix: str, tree: Mapping[object, object], depth: int) -> Iterator[tuple[str, str]]:
    if depth == 0:
        raise ConfigError(f"{prefix[:200]} is nested too deep")
    for key, value in tree.items():
        name = f"{prefix}{key}"
        match value:
            case dict():
                yield from _flatten(f"{name}.", value, depth - 1)
            case list():
                yield name, ",".join(_text(item) for item in value)
            case None:  # `name:` without a value leaves the default
                continue
            case _:
                yield name, _text(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_properties(text: str) -> dict[str, str]:
    """Java's format: comments, `=`, `:` or blank after the key, continued lines, escapes."""
    found: dict[str, str] = {}
    logical = ""
    for physical in text.splitlines():
        line = physical.lstrip()
        if not logical and (not line or line[0] in "#!"):
            continue
        logical += line
        backslashes = len(logical) - len(logical.rstrip("\\"))
        if backslashes % 2:
            logical = logical[:-1]
            continue
        key, value = _split_property(logical)
        found[key] = value
        logical = ""
    if logical:
        key, value = _split_property(logical)
        found[key] = value
    return found


def _split_property(line: str) -> tuple[str, str]:
    end = re.search(r"(?<!\\)(?:\\\\)*[=:\s]", line)
    key, rest = (line[: end.end() - 1], line[end.end() - 1 :]) if end else (line, "")
    rest = rest.lstrip()
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip()
    return _unescape(key), _unescape(rest)


def _unescape(text: str) -> str:
    plain = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}

    def character(found: re.Match[str]) -> str:
        code = found.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else plain.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text)
