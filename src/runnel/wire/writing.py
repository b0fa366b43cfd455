"""Emits the source that writes one version of a message.

`write_into(out, message, parts)` appends to `out` and returns the bytearray that is open at the
end. Records that stand in a file are not read: `out` is closed into `parts`, the slice follows it,
and a new bytearray is opened. So a message without slices leaves `parts` empty.

A value that this version cannot carry is refused with `VersionError`, unless its field is
ignorable. A run of fixed-size values, with the length that follows it, is one `pack`; the zero
that says "no tagged fields" is a pad byte of it.
"""

import struct
from typing import Any

from runnel.wire import primitives
from runnel.wire.schema import Field, Kind, Schema, schema_of
from runnel.wire.source import Source


def write_source(schema: Schema, version: int) -> tuple[str, dict[str, Any]]:
    """The source of `write_into(out, message, parts)`, and the globals it needs."""
    namespace: dict[str, Any] = {
        "VersionError": primitives.VersionError,
        "READABLE": (bytes, bytearray, memoryview),
        "write_uvarint": primitives.write_uvarint,
        "ensure_text": primitives.ensure_text,
        "pack": struct.pack,
    }
    writer = Writer(schema.name, version, schema.is_flexible(version), namespace)
    with writer.block("def write_into(out, message, parts):"):
        writer.fields(schema, "message")
        writer.flush()
        writer.line("return out")
    return writer.text(), namespace


class Writer(Source):
    def __init__(self, name: str, version: int, flexible: bool, namespace: dict[str, Any]) -> None:
        super().__init__(version, flexible, namespace)
        self._name = name
        self._run: list[tuple[str, str]] = []  # (expression, struct code), not yet packed

    def flush(self) -> None:
        self.line_of_run()
        self._run = []

    def line_of_run(self) -> None:
        if not self._run:
            return
        expressions = [expression for expression, code in self._run if code != "x"]
        codes = "".join(code for _, code in self._run)
        if codes == "x":
            self.line("out.append(0)")
        elif expressions:
            pack, _size = self.packer("pack", codes)
            self.line(f"out += {pack}({', '.join(expressions)})")
        else:
            self.line(f"out += {bytes(len(codes))!r}")

    def length(self, expression: str, flexible: bool, code: str) -> None:
        """Ends the run with a length: of fixed size, or a varint of one more than it."""
        if not flexible:
            self._run.append((expression, code))
            self.flush()
            return
        length = self.number("length")
        self.line(f"{length} = {expression} + 1")
        before = self._run
        with self.block(f"if {length} < 128:"):
            if before:
                self._run = [*before, (length, "B")]
                self.flush()
            else:
                self.line(f"out.append({length})")
        with self.block("else:"):
            self._run = before
            self.flush()
            self.line(f"write_uvarint(out, {length})")

    def null(self, flexible: bool, code: str) -> None:
        """Ends the run with the length that stands for null."""
        self._run.append(("", "x") if flexible else ("-1", code))
        self.flush()

    def fields(self, schema: Schema, holder: str) -> None:
        """The fields of a struct; what is left in the run is not yet written."""
        tagged: list[Field] = []
        for field in schema.fields:
            expression = f"{holder}.{field.name}"
            if self.version not in field.versions:
                if not field.ignorable:
                    self.refuse_value(field, expression)
            elif field.tag >= 0:
                tagged.append(field)
            else:
                self.value(field.kind, field.name, expression, self.flexible and field.flexible)
        if self.flexible:
            self.tags(sorted(tagged, key=lambda field: field.tag), holder)

    def refuse_value(self, field: Field, expression: str) -> None:
        with self.block(f"if {self.is_set(field, expression)}:"):
            reason = f"{self._name} v{self.version} has no {field.name}"
            self.line(f"raise VersionError({reason!r})")

    def is_set(self, field: Field, expression: str) -> str:
        """A condition: the field has a value other than its default."""
        default = self.default(field)
        if default == "None":
            return f"{expression} is not None"
        if default == "[]":
            return f"{expression} is None or {expression}" if field.kind.nullable else expression
        if field.default_factory is not None:
            default = self.constant("default", field.default_factory())
        if field.kind.name == "struct":  # the shared default is the common case, and cheap to see
            return f"{expression} is not {default} and {expression} != {default}"
        return f"{expression} != {default}"

    def value(self, kind: Kind[Any], stem: str, expression: str, flexible: bool) -> None:
        if kind.code:
            if kind.name == "uuid":
                self.line(f"assert len({expression}) == 16")
            self._run.append((expression, kind.code))
            return
        variable = self.holder(stem, kind.item)
        self.line(f"{variable} = {expression}")
        if kind.name == "struct":
            self.single(kind, variable)
            return
        code = "h" if kind.name == "string" else "i"
        before = list(self._run)
        if self.version in kind.nullable:
            with self.block(f"if {variable} is None:"):
                self.null(flexible, code)
            self._run = before
            with self.block("else:"):
                self.present(kind, variable, flexible, code)
            return
        if kind.nullable:
            with self.block(f"if {variable} is None:"):
                reason = f"{self._name} v{self.version}: null {stem}"
                self.line(f"raise VersionError({reason!r})")
        self.present(kind, variable, flexible, code)

    def single(self, kind: Kind[Any], variable: str) -> None:
        if self.version not in kind.nullable:
            self.fields(schema_of(kind.item), variable)
            return
        before = list(self._run)
        with self.block(f"if {variable} is None:"):
            self._run.append(("-1", "b"))
            self.flush()
        self._run = [*before, ("1", "b")]
        with self.block("else:"):
            self.fields(schema_of(kind.item), variable)
            self.flush()

    def present(self, kind: Kind[Any], variable: str, flexible: bool, code: str) -> None:
        if kind.name == "array":
            self.length(f"len({variable})", flexible, code)
            self.elements(kind.item, variable, flexible)
        elif kind.name == "records":
            self.records(variable, flexible)
        elif kind.name == "bytes":
            self.length(f"len({variable})", flexible, code)
            self.line(f"out += {variable}")
        else:
            self.line(f"{variable} = {variable}.encode()")
            self.line(f"if len({variable}) > 127: ensure_text({variable})")
            self.length(f"len({variable})", flexible, code)
            self.line(f"out += {variable}")

    def records(self, variable: str, flexible: bool) -> None:
        before = list(self._run)
        with self.block(f"if isinstance({variable}, READABLE):"):
            self.length(f"len({variable})", flexible, "i")
            self.line(f"out += {variable}")
        self._run = before
        with self.block("else:"):
            self.length(f"{variable}.size", flexible, "i")
            with self.block(f"if {variable}.size:"):
                self.line(f"parts.append(out); parts.append({variable}); out = bytearray()")

    def elements(self, item: Kind[Any], variable: str, flexible: bool) -> None:
        if item.code and item.name != "uuid":
            self.line(f"out += pack(f'>{{len({variable})}}{item.code}', *{variable})")
            return
        element = self.holder("element", item.item)
        with self.block(f"for {element} in {variable}:"):
            if item.name == "struct":
                self.fields(schema_of(item.item), element)
            else:
                self.value(item, "item", element, flexible)
            self.flush()

    def tags(self, fields: list[Field], holder: str) -> None:
        """The tagged fields, in the order of their tags; those with their default are left out."""
        if not fields:
            self._run.append(("", "x"))
            return
        conditions = [f"({self.is_set(field, f'{holder}.{field.name}')})" for field in fields]
        before = list(self._run)
        with self.block(f"if {' or '.join(conditions)}:"):
            self.flush()
            count = self.number("tags")
            counted = " + ".join(f"(1 if {condition} else 0)" for condition in conditions)
            self.line(f"{count} = {counted}")
            self.line(f"out.append({count})")
            for field, condition in zip(fields, conditions, strict=True):
                with self.block(f"if {condition}:"):
                    self.tagged(field, f"{holder}.{field.name}")
        self._run = [*before, ("", "x")]
        with self.block("else:"):
            self.flush()

    def tagged(self, field: Field, expression: str) -> None:
        """A tag, the size of its value, its value; which is written apart to know its size."""
        assert field.kind.name != "records", "no tagged field holds records"
        assert field.tag < 128, "a tag is written as one byte"
        outer = self.fresh("outer")
        self.line(f"{outer} = out; out = bytearray()")
        if field.kind.name == "struct":
            self.tagged_struct(field.kind, expression)
        else:
            self.value(field.kind, field.name, expression, flexible=True)
        self.flush()
        self.line(f"{outer}.append({field.tag}); write_uvarint({outer}, len(out))")
        self.line(f"{outer} += out; out = {outer}")

    def tagged_struct(self, kind: Kind[Any], expression: str) -> None:
        """Unlike elsewhere, a nullable struct follows a varint here: 0 for null, else 1."""
        variable = self.holder("struct", kind.item)
        self.line(f"{variable} = {expression}")
        if self.version not in kind.nullable:
            self.fields(schema_of(kind.item), variable)
            return
        with self.block(f"if {variable} is None:"):
            self.line("out.append(0)")
        with self.block("else:"):
            self._run.append(("1", "b"))
            self.fields(schema_of(kind.item), variable)
            self.flush()
