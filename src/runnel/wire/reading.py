"""Emits the source that reads one version of a message.

The code is straight-line: nested structs stand in place, arrays are loops, a run of fixed-size
values (with the length that follows it) is one `unpack_from`. A length, count or tag count is
checked against the end of the frame before anything is made of it. What the code may raise for
bad bytes is turned into `WireError` by one `try` around all of it.
"""

import struct
from typing import Any

from runnel.errors import WireError
from runnel.wire import primitives
from runnel.wire.schema import Field, Kind, Schema, schema_of
from runnel.wire.source import Source


def read_source(schema: Schema, cls: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """The source of `read(buffer, position)`, and the globals it needs."""
    namespace: dict[str, Any] = {
        "WireError": WireError,
        "BAD_BYTES": (WireError, struct.error, IndexError, UnicodeDecodeError),
        "SHORT_BYTES": primitives.SHORT_BYTES,
        "read_uvarint": primitives.read_uvarint,
        "read_bytes": primitives.read_bytes,
        "read_text": primitives.read_text,
        "skip_tags": primitives.skip_tags,
        "ensure_tag_count": primitives.ensure_tag_count,
        "refuse_array": primitives.refuse_array,
        "refuse_size": primitives.refuse_size,
        "unpack_from": struct.unpack_from,
    }
    reader = Reader(version, schema.is_flexible(version), namespace)
    with reader.block("def read(buffer, position):"):
        reader.line("limit = len(buffer)")
        reader.line(f"budget = {primitives.ELEMENTS_MAX}")
        with reader.block("try:"):
            if _has_records(schema):
                reader.line("if type(buffer) is not memoryview: buffer = memoryview(buffer)")
            made = reader.struct(cls)
            reader.line(f"return {made}, position")
        with reader.block("except BAD_BYTES as error:"):
            where = f"{schema.name} v{version}"
            reader.line(f"raise WireError(f'{where}, byte {{position}}: {{error}}') from error")
    return reader.text(), namespace


def _has_records(schema: Schema) -> bool:
    def holds(kind: Kind[Any]) -> bool:
        if kind.name == "struct":
            return _has_records(schema_of(kind.item))
        return kind.name == "records" or (kind.name == "array" and holds(kind.item))

    return any(holds(field.kind) for field in schema.fields)


def minimal_size(kind: Kind[Any], version: int, flexible: bool) -> int:
    """The fewest bytes a value can take."""
    if kind.code:
        return struct.calcsize(">" + kind.code)
    if kind.name == "struct":
        if version in kind.nullable:
            return 1
        fields = [f for f in schema_of(kind.item).fields if version in f.versions]
        plain = [f.kind for f in fields if f.tag < 0]
        return flexible + sum(minimal_size(each, version, flexible) for each in plain)
    if flexible:
        return 1
    return 2 if kind.name == "string" else 4


class Reader(Source):
    def __init__(self, version: int, flexible: bool, namespace: dict[str, Any]) -> None:
        super().__init__(version, flexible, namespace)
        self._run: list[tuple[str, str]] = []  # (variable, struct code), not yet unpacked

    def flush(self) -> None:
        if not self._run:
            return
        variables, codes = zip(*self._run, strict=True)
        self._run = []
        if codes == ("B",):
            self.line(f"{variables[0]} = buffer[position]; position += 1")
            return
        unpack, size = self.packer("unpack_from", "".join(codes))
        self.line(f"{', '.join(variables)}, = {unpack}(buffer, position); position += {size}")

    def struct(self, cls: type[Any]) -> str:
        """Reads the fields of a struct; the expression that makes it of them."""
        arguments: list[str] = []
        tagged: list[tuple[Field, str]] = []
        kept = 0  # arguments after this one are shared defaults, which `__init__` has too
        for field in schema_of(cls).fields:
            if self.version not in field.versions:
                arguments.append(self.default(field))
                kept = len(arguments) if field.default_factory else kept
                continue
            if field.tag >= 0:
                variable = self.fresh(field.name)
                tagged.append((field, variable))
            else:
                variable = self.value(field.kind, field.name, self.flexible and field.flexible)
            arguments.append(variable)
            kept = len(arguments)
        if self.flexible:
            self.tags(tagged)
        self.flush()
        return self.make(cls, arguments, kept)

    def make(self, cls: type[Any], arguments: list[str], kept: int) -> str:
        return f"{self.constant(cls.__name__, cls)}({', '.join(arguments[:kept])})"

    def value(self, kind: Kind[Any], stem: str, flexible: bool) -> str:
        """Reads one value into a new variable, which may be set only at the next flush."""
        variable = self.fresh(stem)
        if kind.code:
            self._run.append((variable, kind.code))
        elif kind.name == "struct":
            self.single(kind, variable)
        elif kind.name == "array":
            self.array(kind, variable, flexible)
        else:
            self.sized(kind, variable, flexible)
        return variable

    def single(self, kind: Kind[Any], variable: str, *, tagged: bool = False) -> None:
        """A struct; a nullable one follows a byte, negative (among tagged fields: 0) for null."""
        if self.version not in kind.nullable:
            made = self.struct(kind.item)
            self.line(f"{variable} = {made}")
            return
        marker = self.number("marker")
        self._run.append((marker, "B" if tagged else "b"))
        self.flush()
        with self.block(f"if {marker} {'== 0' if tagged else '< 0'}:"):
            self.line(f"{variable} = None")
        with self.block("else:"):
            made = self.struct(kind.item)
            self.line(f"{variable} = {made}")

    def sized(self, kind: Kind[Any], variable: str, flexible: bool) -> None:
        """A string, bytes or records after their size."""
        size = self.number("size")
        self._run.append((size, "B" if flexible else "h" if kind.name == "string" else "i"))
        self.flush()
        if self.version not in kind.nullable:
            self.content(kind, variable, size, flexible)
            return
        with self.block(f"if {size} == {0 if flexible else -1}:"):
            self.line(f"{variable} = None")
        with self.block("else:"):
            self.content(kind, variable, size, flexible)

    def content(self, kind: Kind[Any], variable: str, size: str, flexible: bool) -> None:
        if kind.name == "records":
            self.records(variable, size, flexible)
            return
        decode = ".decode()" if kind.name == "string" else ""
        read = "read_text" if kind.name == "string" else "read_bytes"
        within, entry, step = (
            (f"{size} < 128", size, f"{size} - 1")
            if flexible
            else (f"0 <= {size} < 127", f"{size} + 1", size)
        )
        with self.block(f"if {within}:"):
            self.line(f"{variable} = SHORT_BYTES[{entry}](buffer, position)[0]{decode}")
            self.line(f"position += {step}")
        with self.block("else:"):
            if flexible:
                self.line(f"{size}, position = read_uvarint(buffer, position - 1)")
                self.line(f"{size} -= 1")
            self.line(f"{variable}, position = {read}(buffer, position, {size})")

    def records(self, variable: str, size: str, flexible: bool) -> None:
        """The one value that is not copied: a view of the frame."""
        if flexible:
            with self.block(f"if {size} > 127:"):
                self.line("high = buffer[position]")
                with self.block("if high < 128:"):  # two bytes, the size of a small batch
                    self.line(f"{size} += (high << 7) - 128; position += 1")
                with self.block("else:"):
                    self.line(f"{size}, position = read_uvarint(buffer, position - 1)")
            self.line(f"{size} -= 1")
        self.line(f"end = position + {size}")
        self.line(f"if end > limit or {size} < 0: refuse_size({size}, limit - position)")
        self.line(f"{variable} = buffer[position:end]; position = end")

    def array(self, kind: Kind[Any], variable: str, flexible: bool) -> None:
        count = self.number("count")
        self._run.append((count, "B" if flexible else "i"))
        self.flush()
        if flexible:
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, position = read_uvarint(buffer, position - 1)")
            self.line(f"{count} -= 1")
        if self.version in kind.nullable:
            with self.block(f"if {count} == -1:"):
                self.line(f"{variable} = None")
            with self.block("else:"):
                self.elements(kind.item, variable, count, flexible)
        else:
            self.elements(kind.item, variable, count, flexible)

    def elements(self, item: Kind[Any], variable: str, count: str, flexible: bool) -> None:
        smallest = minimal_size(item, self.version, flexible)
        needed = count if smallest == 1 else f"{count} * {smallest}"
        self.line(f"budget -= {count}")
        with self.block(f"if {count} < 0 or budget < 0 or {needed} > limit - position:"):
            self.line(f"refuse_array({count}, limit - position)")
        if item.code and item.name != "uuid":
            codes = f"f'>{{{count}}}{item.code}'"
            self.line(f"{variable} = list(unpack_from({codes}, buffer, position))")
            self.line(f"position += {needed}")
            return
        self.line(f"{variable} = []")
        with self.block(f"for _ in range({count}):"):
            if item.name == "struct":
                made = self.struct(item.item)
            else:
                made = self.value(item, "element", flexible)
                self.flush()
            self.line(f"{variable}.append({made})")

    def tags(self, known: list[tuple[Field, str]]) -> None:
        """The tagged fields that end every flexible struct. Known ones must have their size."""
        count = self.number("tags")
        self._run.append((count, "B"))
        self.flush()
        for field, variable in known:
            self.line(f"{variable} = {self.default(field)}")
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, position = read_uvarint(buffer, position - 1)")
            if not known:
                self.line(f"position = skip_tags(buffer, position, {count})")
                return
            tag, end = self.number("tag"), self.number("end")
            with self.block(f"for _ in range(ensure_tag_count(buffer, position, {count})):"):
                self.line(f"{tag}, position = read_uvarint(buffer, position)")
                self.line(f"{end}, position = read_uvarint(buffer, position)")
                self.line(f"if {end} > limit - position: refuse_size({end}, limit - position)")
                self.line(f"{end} += position")
                for number, (field, variable) in enumerate(known):
                    with self.block(f"{'elif' if number else 'if'} {tag} == {field.tag}:"):
                        self.tagged(field, variable)
                with self.block("else:"):
                    self.line(f"position = {end}")
                self.line(f"if position != {end}: refuse_size({end} - position, 0)")

    def tagged(self, field: Field, variable: str) -> None:
        assert field.kind.name != "records", "no tagged field holds records"
        if field.kind.name == "struct":
            self.single(field.kind, variable, tagged=True)
        else:
            read = self.value(field.kind, field.name, flexible=True)
            self.flush()
            self.line(f"{variable} = {read}")
