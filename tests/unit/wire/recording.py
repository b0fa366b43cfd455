"""What Kafka's Java wrote (tests/compat/java-oracle), and all that our tables declare."""

import base64
import importlib
import json
import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from runnel.wire.schema import Kind, schema_of
from tools.declare import TARGET, declarations, snake

RECORDED = Path(__file__).parent / "recorded" / "messages.jsonl.xz"


class Instance(NamedTuple):
    message: str
    version: int
    kind: str
    value: dict[str, Any]  # as Kafka's JSON converter shows it
    encoded: bytes
    with_unknown_tags: bytes | None


@cache
def instances() -> tuple[Instance, ...]:
    def decoded(row: dict[str, Any]) -> Iterator[Any]:
        name = row["message"]
        yield name.removesuffix("Data") if name != "DefaultPrincipalData" else name
        yield row["version"]
        yield row["kind"]
        yield row["value"]
        yield base64.b64decode(row["bytes"])
        yield base64.b64decode(row["tagged"]) if "tagged" in row else None

    with lzma.open(RECORDED, "rt", encoding="utf-8") as lines:
        return tuple(Instance(*decoded(json.loads(line))) for line in lines)


@cache
def message_types() -> dict[str, type[Any]]:
    """Every message that is declared, by its name."""
    found: dict[str, type[Any]] = {}
    for path in declarations():
        if path.name == "__init__.py":
            continue
        names = path.relative_to(TARGET).with_suffix("").parts
        module = importlib.import_module(".".join(("runnel.wire.messages", *names)))
        for name, cls in vars(module).items():
            if isinstance(cls, type) and hasattr(cls, "__wire__") and schema_of(cls).versions:
                assert found.setdefault(name, cls) is cls, f"two messages are called {name}"
    return found


def pairs() -> Iterator[tuple[str, int]]:
    """Every message and version that the tables name."""
    for name, cls in message_types().items():
        for version in schema_of(cls).versions:
            yield name, version


def from_json(cls: type[Any], value: dict[str, Any]) -> Any:  # noqa: ANN401
    """Our instance of what Kafka's converter shows. Every name in it must be one of ours."""
    kinds = {field.name: field.kind for field in schema_of(cls).fields}
    arguments = {}
    for name, shown in value.items():
        if name.endswith("SizeInBytes") and snake(name.removesuffix("SizeInBytes")) in kinds:
            arguments[snake(name.removesuffix("SizeInBytes"))] = records_of_size(shown)
        else:
            arguments[snake(name)] = _from_json(kinds[snake(name)], shown)
    return cls(**arguments)


def _from_json(kind: Kind[Any], shown: Any) -> Any:  # noqa: ANN401
    if shown is None:
        return None
    match kind.name:
        case "struct":
            return from_json(kind.item, shown)
        case "array":
            return [_from_json(kind.item, each) for each in shown]
        case "uuid":
            return base64.urlsafe_b64decode(shown + "==")
        case "bytes":
            return base64.b64decode(shown)
        case _:
            return shown


def records_of_size(size: int) -> bytes:
    """The bytes that the generator makes where a message holds `size` bytes of records."""
    return bytes((index * 7 + size) & 0xFF for index in range(size))
