"""Writes src/runnel/wire/messages from the tables in tools/kafka-4.3. `--check` only compares.

- One file per API holds its request and its response; RequestHeader and ResponseHeader share
  `header.py`; every other data type has a file of its own. A coordinator's key and value stand
  together under `records/`.
- Names are Kafka's: structs as they are, fields in snake_case (a Python keyword gets a trailing
  underscore). Where the two messages of a file both declare a struct of one name, both of these
  structs are prefixed with the name of their message.
- A struct that stands as a single field with a default, and holds plain values only, is frozen:
  its default is one shared instance.
- Messages without a valid version (LeaderAndIsr and three others) are numbers in `ApiKey` only.
- `index.py` holds `ApiKey` and, per API, its file and the versions a Kafka 4.3.1 broker offers.
"""

import json
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
TABLES: Final = ROOT / "tools" / "kafka-4.3"
TARGET: Final = ROOT / "src" / "runnel" / "wire" / "messages"
ORIGIN: Final = "Written by tools/declare.py from tools/kafka-4.3; never edited by hand."
LINE_MAX: Final = 100

Row = dict[str, Any]

# Kafka's type: the name of the Kind, the Python type, the default where the tables name none.
PLAIN: Final[dict[str, tuple[str, str, str]]] = {
    "bool": ("BOOL", "bool", "False"),
    "int8": ("INT8", "int", "0"),
    "int16": ("INT16", "int", "0"),
    "int32": ("INT32", "int", "0"),
    "int64": ("INT64", "int", "0"),
    "uint16": ("UINT16", "int", "0"),
    "uint32": ("UINT32", "int", "0"),
    "float64": ("FLOAT64", "float", "0.0"),
    "uuid": ("UUID", "bytes", "NO_UUID"),
    "string": ("STRING", "str", '""'),
    "bytes": ("BYTES", "bytes", 'b""'),
    "records": ("RECORDS", "Readable", 'b""'),
}


def snake(name: str) -> str:
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return split + "_" if keyword.iskeyword(split) else split


def span(text: str) -> tuple[int, int | None]:
    """First and last version; None where there is no last."""
    if text.endswith("+"):
        return int(text[:-1]), None
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def field_span(message: Row, field: Row) -> tuple[int, int | None]:
    """The versions of a field, cut to those of its message."""
    since, until = span(field.get("versions") or field["taggedVersions"])
    first, last = span(message["validVersions"])
    assert last is not None
    return max(since, first), None if until is None or until >= last else until


def flexible_since(message: Row) -> int | None:
    versions = message["flexibleVersions"]
    return None if versions == "none" else span(versions)[0]


def structs_of(message: Row) -> dict[str, list[Row]]:
    """Every struct of a message by Kafka's name, each after those it contains."""
    common = {row["name"]: row["fields"] for row in message.get("commonStructs", [])}
    found: dict[str, list[Row]] = {}

    def visit(fields: list[Row]) -> None:
        for field in fields:
            name = field["type"].removeprefix("[]")
            if name in PLAIN or name in found:
                continue
            inner = field.get("fields") or common[name]
            visit(inner)
            found[name] = inner

    visit(message["fields"])
    return found


def frozen_structs(message: Row) -> set[str]:
    structs = structs_of(message)

    def fields() -> Iterator[Row]:
        yield from message["fields"]
        for inner in structs.values():
            yield from inner

    single = {f["type"] for f in fields() if f["type"] in structs and f.get("default") != "null"}
    return {name for name in single if all(f["type"] in PLAIN for f in structs[name])}


class Declarations:
    """The text of one file."""

    def __init__(self, title: str, messages: list[Row]) -> None:
        self.title = title
        self.messages = messages
        self.used: set[str] = set()
        seen: list[str] = [name for message in messages for name in structs_of(message)]
        self.clashes = {name for name in seen if seen.count(name) > 1}

    def text(self) -> str:
        classes = [part for message in self.messages for part in self.classes(message)]
        ports = "from runnel.ports import Readable\n" if "Readable" in self.used else ""
        types = "from runnel.types import NO_TOPIC_ID as NO_UUID\n" * ("NO_UUID" in self.used)
        names = sorted(self.used - {"Readable", "NO_UUID"}, key=lambda n: (not n.isupper(), n))
        imports = "".join(f"    {name},\n" for name in names)
        return (
            f'"""{self.title}\n\n{ORIGIN}\n"""\n\n{ports}{types}'
            f"from runnel.wire.schema import (\n{imports})\n\n\n" + "\n\n".join(classes)
        )

    def use(self, name: str) -> str:
        self.used.add(name)
        return name

    def classes(self, message: Row) -> Iterator[str]:
        frozen = frozen_structs(message)
        for name, fields in structs_of(message).items():
            decorator = self.use("frozen_struct" if name in frozen else "struct")
            yield self.declared(f"@{decorator}", self.class_name(message, name), message, fields)
        first, last = span(message["validVersions"])
        arguments = [f"versions=({first}, {last})"]
        if (flexible := flexible_since(message)) is not None:
            arguments.append(f"flexible_since={flexible}")
        if "apiKey" in message:
            arguments.insert(0, f"api_key={message['apiKey']}")
        decorator = f"@{self.use('message')}({', '.join(arguments)})"
        yield self.declared(decorator, message["name"], message, message["fields"])

    def class_name(self, message: Row, struct: str) -> str:
        return message["name"] + struct if struct in self.clashes else struct

    def declared(self, decorator: str, name: str, message: Row, fields: list[Row]) -> str:
        lines = [self.field(message, field) for field in fields] or ["    pass\n"]
        return f"{decorator}\nclass {name}:\n" + "".join(lines)

    def field(self, message: Row, field: Row) -> str:
        kind, annotation, default = self.kind(message, field)
        since, until = field_span(message, field)
        assert field.get("taggedVersions", field.get("versions")) == (
            field.get("versions") or field["taggedVersions"]
        ), "a field that is tagged in some of its versions only"
        arguments = [kind, default]
        if since > span(message["validVersions"])[0]:
            arguments.append(f"since={since}")
        if until is not None:
            arguments.append(f"until={until}")
        if "tag" in field:
            arguments.append(f"tag={field['tag']}")
        if field.get("ignorable"):
            arguments.append("ignorable=True")
        if field.get("flexibleVersions") == "none":
            arguments.append("flexible=False")
        head = f"    {snake(field['name'])}: {annotation} = {self.use('wire')}("
        for text in (
            f"{head}{', '.join(arguments)})",
            f"{head}\n        {', '.join(arguments)}\n    )",
        ):
            if max(map(len, text.splitlines())) <= LINE_MAX:
                return text + "\n"
        return f"{head}\n" + "".join(f"        {argument},\n" for argument in arguments) + "    )\n"

    def kind(self, message: Row, field: Row) -> tuple[str, str, str]:
        """The Kind, the annotation and the `default` argument of a field."""
        is_array, name = field["type"].startswith("[]"), field["type"].removeprefix("[]")
        if name in PLAIN:
            kind, annotation, implicit = PLAIN[name]
            if name == "records" and message["type"] == "response":
                kind, annotation = "RESPONSE_RECORDS", "Records"
            if name == "records":
                self.use(annotation)
            self.use(kind)
        else:
            kind = annotation = self.class_name(message, name)
            frozen = name in frozen_structs(message)
            implicit = f"{kind}()" if frozen else f"default_factory={kind}"
            if not is_array:
                kind = f"{self.use('struct_of')}({kind})"
        if is_array:
            kind, annotation = f"{self.use('array_of')}({kind})", f"list[{annotation}]"
            implicit = "default_factory=list"
        if versions := field.get("nullableVersions"):
            since, until = span(versions)
            implicit = "None" if name == "records" else implicit
            limits = f", since={since}" * (since > field_span(message, field)[0])
            limits += "" if until is None else f", until={until}"
            kind, annotation = f"{self.use('nullable')}({kind}{limits})", f"{annotation} | None"
        default = self.default(field, implicit)
        if default == "NO_UUID":
            self.use("NO_UUID")
        return kind, annotation, default if "=" in default else f"default={default}"

    @staticmethod
    def default(field: Row, implicit: str) -> str:
        """A JSON null is no default to Kafka's generator; the string "null" is."""
        given = field.get("default")
        if given is None or given == "":
            return implicit
        if given == "null":
            return "None"
        if field["type"] == "bool":
            return str(str(given).lower() == "true")
        assert field["type"] in PLAIN and PLAIN[field["type"]][1] == "int", field
        return str(int(str(given), 0))


def versions_phrase(message: Row) -> str:
    first, last = span(message["validVersions"])
    flexible = flexible_since(message)
    versions = f"version {first}" if first == last else f"versions {first}-{last}"
    return f"{versions}, " + ("never flexible" if flexible is None else f"flexible from {flexible}")


def api_files(messages: list[Row]) -> Iterator[tuple[str, str]]:
    by_name = {message["name"]: message for message in messages}
    for request in messages:
        if request["type"] != "request" or request["validVersions"] == "none":
            continue
        name = request["name"].removesuffix("Request")
        response = by_name[name + "Response"]
        assert versions_phrase(request) == versions_phrase(response), name
        title = f"{name} (key {request['apiKey']}), {versions_phrase(request)}."
        yield f"{snake(name)}.py", Declarations(title, [request, response]).text()
    headers = [message for message in messages if message["type"] == "header"]
    title = "; ".join(f"{row['name']}: {versions_phrase(row)}" for row in headers) + "."
    yield "header.py", Declarations(title, headers).text()
    for message in messages:
        if message["type"] == "data":
            title = f"{message['name']}, {versions_phrase(message)}."
            yield f"{snake(message['name'])}.py", Declarations(title, [message]).text()


def record_files(records: list[Row]) -> Iterator[tuple[str, str]]:
    by_name = {record["name"]: record for record in records}
    for key in records:
        if key["type"] == "coordinator-key":
            name = key["name"].removesuffix("Key")
            value = by_name[name + "Value"]
            title = f"{name} (key {key['apiKey']}); value: {versions_phrase(value)}."
            yield f"records/{snake(name)}.py", Declarations(title, [key, value]).text()
    yield "records/__init__.py", ""


def index_file(messages: list[Row]) -> str:
    offered: dict[str, tuple[int, int]] = {}
    for line in (TABLES / "apis.md").read_text().splitlines():
        if row := re.match(r"\| \d+ \| (\w+) \| (\d+)-(\d+) ", line):
            offered[row[1]] = int(row[2]), int(row[3])
    requests = sorted((m for m in messages if m["type"] == "request"), key=lambda m: m["apiKey"])
    members, rows = [], []
    for request in requests:
        name = request["name"].removesuffix("Request")
        members.append(f"    {snake(name).upper()} = {request['apiKey']}\n")
        if name in offered:
            first, last = offered[name]
            rows.append(f'    {request["apiKey"]}: ("{snake(name)}", "{name}", {first}, {last}, ')
            rows.append(f"{flexible_since(request)}),\n")
    return (
        f'"""Every API of Kafka 4.3.1 by its key.\n\n{ORIGIN}\n"""\n\n'
        "from enum import IntEnum\nfrom typing import Final\n\n\n"
        f"class ApiKey(IntEnum):\n{''.join(members)}\n\n"
        "# Key: file, name, first and last version that a broker offers, first flexible version.\n"
        "ROWS: Final[dict[int, tuple[str, str, int, int, int | None]]] = {\n"
        f"{''.join(rows)}}}\n"
    )


def declarations() -> dict[Path, str]:
    """What the folder must hold: path to text."""
    messages: list[Row] = json.loads((TABLES / "messages.json").read_text())
    records: list[Row] = json.loads((TABLES / "coordinator-records.json").read_text())
    files = dict(api_files(messages)) | dict(record_files(records))
    files |= {"index.py": index_file(messages), "__init__.py": ""}
    return {TARGET / name: text for name, text in files.items()}


def differences() -> list[str]:
    """One line per file that is missing, not ours, or not what the tables say."""
    wanted = declarations()
    held = {path: path.read_text() for path in TARGET.rglob("*.py")}
    return [
        f"{path.relative_to(ROOT)} differs from the tables"
        for path in sorted(wanted.keys() | held.keys())
        if wanted.get(path) != held.get(path)
    ]


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        found = differences()
        print("\n".join(found) or f"{len(declarations())} files agree with the tables")
        return 1 if found else 0
    wanted = declarations()
    for path in set(TARGET.rglob("*.py")) - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{len(wanted)} files written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
