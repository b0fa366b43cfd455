"""Configuration files: YAML, JSON or Java properties, read to names, texts and where each stood.

Nested names are joined with dots. What a file holds is never shown in a message but for names:
some of its values are secrets.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.config.definition import ConfigError

if TYPE_CHECKING:
    import yaml

MAX_FILE_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 32
MAX_VALUES: Final = 10_000  # a YAML alias can stand for more than was written


class Given(NamedTuple):
    """One value as somebody wrote it."""

    spelling: str
    text: str
    origin: str  # a flag, a variable, or a file with the line
    typed: str | None = None  # what the file's format takes the text for, where that is another


def read_file(path: Path) -> list[Given]:
    """Told apart by the suffix. Raises ConfigError."""
    text = _read(path)
    match path.suffix:
        case ".yaml" | ".yml":
            found = _yaml(path, text)
        case ".json":
            found = _json(path, text)
        case ".properties" | ".conf":
            found = parse_properties(text, str(path))
        case suffix:
            raise ConfigError(f"{path}: {suffix!r} is none of .yaml, .yml, .json, .properties")
    given: dict[str, Given] = {}
    for count, value in enumerate(found):
        if count >= MAX_VALUES:
            raise ConfigError(f"{path} holds more than {MAX_VALUES} values")
        if value.spelling in given and path.suffix not in (".properties", ".conf"):
            raise ConfigError(f"{value.origin} sets {value.spelling[:200]} twice; remove one")
        given[value.spelling] = value  # in Java's format a later line wins, as in Kafka
    return list(given.values())


def _read(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            raw = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}") from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")  # editors of Windows put a mark before the text
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None


def _yaml(path: Path, text: str) -> Iterator[Given]:
    import yaml  # 20 ms, and most brokers have no YAML file

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(f"{path} does not hold names and values")
        yield from _yaml_values(loader, path, "", root, MAX_DEPTH)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path} is not YAML: {error.problem}{line}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {type(error).__name__}") from None


def _yaml_values(
    loader: "yaml.SafeLoader", path: Path, prefix: str, node: "yaml.MappingNode", depth: int
) -> Iterator[Given]:
    import yaml

    if depth == 0:
        raise ConfigError(f"{path}: {prefix[:200]} is nested too deep")
    loader.flatten_mapping(node)
    for key, value in node.value:
        origin = f"{path}, line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{origin}: a name is not a text")
        name = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode):
            yield from _yaml_values(loader, path, f"{name}.", value, depth - 1)
            continue
        items = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            raise ConfigError(f"{origin}: {name[:200]} holds a list of what is no plain value")
        typed = [_yaml_text(loader, item) for item in items]
        if typed == [None] and value is items[0]:  # `name:` without a value leaves the default
            continue
        texts = [
            item.value if text is not None else "" for item, text in zip(items, typed, strict=True)
        ]
        yield Given(name, ",".join(texts), origin, ",".join(text or "" for text in typed))


def _yaml_text(loader: "yaml.SafeLoader", node: "yaml.ScalarNode") -> str | None:
    """As YAML takes it: `off` is false, 0x10 is 16. What only looks like a number or a date
    (0x_, 2026-02-30) is the text that stands there, for the setting to judge.
    """
    try:
        return _text(loader.construct_object(node))
    except (ValueError, LookupError, AttributeError):  # the library's own, of such a text
        return str(node.value)


def _json(path: Path, text: str) -> Iterator[Given]:
    try:
        # No number is too long for a text; the setting says what is wrong with it.
        tree: object = json.loads(text, parse_int=str)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} does not hold names and values")
    yield from _json_values(path, text, "", tree, MAX_DEPTH)


def _json_values(
    path: Path, text: str, prefix: str, tree: dict[str, object], depth: int
) -> Iterator[Given]:
    if depth == 0:
        raise ConfigError(f"{path}: {prefix[:200]} is nested too deep")
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _json_values(path, text, f"{name}.", value, depth - 1)
            continue
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, dict | list) for item in items):
            raise ConfigError(f"{path}: {name[:200]} holds a list of what is no plain value")
        if value is not None:
            joined = ",".join(_text(item) or "" for item in items)
            yield Given(name, joined, f"{path}{_json_line(text, key)}")


def _json_line(text: str, key: str) -> str:
    """The parser does not tell; a key that stands there once is easily found."""
    lines = [n for n, line in enumerate(text.splitlines(), 1) if json.dumps(key) in line]
    return f", line {lines[0]}" if len(lines) == 1 else ""


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_properties(text: str, path: str) -> Iterator[Given]:
    """Java's format: comments, `=`, `:` or blank after the key, continued lines, escapes."""
    logical = ""
    begun = 1
    for number, physical in enumerate([*text.splitlines(), ""], 1):
        line = physical.lstrip()
        if not logical:
            begun = number
            if not line or line[0] in "#!":
                continue
        logical += line
        backslashes = len(logical) - len(logical.rstrip("\\"))
        if backslashes % 2:
            logical = logical[:-1]
            continue
        key, value = _split_property(logical)
        yield Given(key, value, f"{path}, line {begun}")
        logical = ""


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
