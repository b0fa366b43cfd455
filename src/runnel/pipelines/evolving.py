"""Which columns values have, growing as they do: new JSON fields, new versions of an Avro schema.

What was found is kept among the pipeline's notes before a batch is written with it, so that a batch
that is repeated is read in the same way.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.arrow.decoding import Decoding
from runnel.pipelines.spec import Spec
from runnel.pipelines.value_columns import BESIDE, TAKEN, column_name, inferred_fields
from runnel.spark.lake.lake_options import LakeOptions, TableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NOTE: Final = "columns.json"
COLUMNS_MAX: Final = 1000
NO_FIELD: Final = "_ STRING"
"""To read JSON by where nothing is known yet: whether it is an object at all."""
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f ,;{}()=]|^$")
"""What names of columns in Delta and Parquet may not have."""


class Columns:
    """The fields of one pipeline's values; `for_batch` once for each batch."""

    def __init__(
        self,
        spec: Spec,
        notes: Path,
        table: LakeOptions | None,
        tell: Callable[[str], None],
        *,
        beside_record: bool = True,  # whether the columns of every record are there as well
    ) -> None:
        self._decode = spec.decode
        self._topics = spec.source.topics
        self._file = notes / NOTE
        self._tell = tell
        self._most = spec.options.whole("max_columns") or COLUMNS_MAX
        self._left_out: set[str] = set()
        self._column: Callable[[str], str] = column_name if beside_record else str
        self._beside = {name.lower(): name for name in (BESIDE if beside_record else ())}
        self._known = self._remembered() or self._first(table)

    def for_batch(self, rows: "DataFrame") -> "tuple[Decoding, StructType]":
        """How the values of a batch are read, and as which fields. Raises TableError."""
        decode = self._decoding("")
        if self._decode.format == "avro":
            from runnel.arrow.decoders import pinned, value_struct

            decode = pinned(decode, self._topics)
            self.grow(_arrow(value_struct(decode)))
        else:
            self.grow(inferred_fields(rows))
        wanted = self.wanted
        if self._decode.format == "json" and wanted.fields:
            decode = self._decoding(wanted.json())
        return decode, wanted

    def _decoding(self, schema: str) -> Decoding:
        """Avro is read as it was written; JSON has no schema but the one that is wanted."""
        decode = self._decode
        if decode.format == "avro":
            return Decoding(
                "avro",
                decode.schema,
                bad_records="null",
                nested=True,
                registry=decode.registry or None,
                subject=decode.subject or None,
            )
        return Decoding("json", schema or NO_FIELD, bad_records="null", nested=True)

    @property
    def wanted(self) -> "StructType":
        return _spark(self._known)

    def grow(self, found: "pa.DataType") -> None:
        """By the fields of a struct that are not known yet. Raises TableError."""
        import pyarrow as pa

        from runnel.arrow.inferring import known_only

        known = known_only(found)
        if known is None:
            return
        fields = {field.name: field.type for field in self._known}
        added = []
        for field in self._named(known, self._known):
            if field.name in fields:
                grown = _grown(fields[field.name], field.type)
                if grown != fields[field.name]:
                    added.append(field.name)
                fields[field.name] = grown
            else:
                fields[field.name] = field.type
                added.append(field.name)
        if not added:
            return
        if len(fields) > self._most:
            raise TableError(
                f"values have {len(fields)} different fields, more than max_columns="
                f"{self._most}: are some of their names data? Give decode.schema and leave out"
                f" options.evolve, or raise options.max_columns"
            )
        self._known = pa.struct([pa.field(name, type_) for name, type_ in fields.items()])
        self._remember()
        shown = [f"{self._column(name)} ({_ddl(fields[name])})" for name in added]
        self._tell(f"new columns: {', '.join(shown)}")

    def _named(
        self, found: "pa.DataType", known: "pa.DataType", path: str = ""
    ) -> "Iterator[pa.Field]":
        """Of the fields of a struct those that are columns of another, or can become some."""
        import pyarrow as pa

        types = {field.name: field.type for field in known}
        column = str if path else self._column
        owners = {column(name).lower(): name for name in types}
        beside = {} if path else self._beside
        for field in found:
            name = column(field.name)
            owner = owners.setdefault(name.lower(), field.name)
            twin = beside.get(name.lower()) or ("" if owner == field.name else column(owner))
            if field.name not in types and (twin or _FORBIDDEN.search(field.name)):
                self._leave_out(path + field.name, twin)
            elif pa.types.is_struct(field.type):
                before = types.get(field.name, pa.null())
                within = before if pa.types.is_struct(before) else pa.struct([])
                inner = list(self._named(field.type, within, f"{path}{field.name}."))
                if inner:
                    yield pa.field(field.name, pa.struct(inner))
            else:
                yield field

    def _leave_out(self, name: str, twin: str) -> None:
        """Told once."""
        if name not in self._left_out and len(self._left_out) < self._most:
            self._left_out.add(name)
            why = f"{twin} is a column already" if twin else "that is no name for a column"
            self._tell(f"field {name!r} is left out: {why}")

    def _remembered(self) -> "pa.DataType | None":
        import pyarrow as pa
        from pyspark.sql.types import StructType

        try:
            document = json.loads(self._file.read_text())
        except FileNotFoundError:
            return None
        found = _arrow(StructType.fromJson(document))
        # A run of an earlier version may have noted a field that it then could not write.
        return pa.struct([f for f in found if self._column(f.name).lower() not in self._beside])

    def _remember(self) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(_spark(self._known).json())
        part.replace(self._file)

    def _first(self, table: LakeOptions | None) -> "pa.DataType":
        """What the file declares, and what the table has."""
        import pyarrow as pa

        from runnel.arrow.ddl import struct_type

        if self._decode.format == "json" and self._decode.schema:
            found = _arrow(struct_type(self._decode.schema))
        else:
            found = pa.struct([])
        there = None if table is None else _columns_of(table)
        if there is None:
            return found
        names = {field.name for field in found}
        return pa.struct([*found, *(field for field in there if field.name not in names)])


def _columns_of(table: LakeOptions) -> "list[pa.Field] | None":
    import pyarrow as pa

    from runnel.pipelines.value_columns import TAKEN_PREFIX
    from runnel.spark.lake.lake_table import open_table

    kept = open_table(replace(table, partition_by=())).kept()
    if kept is None:
        return None
    derived = set(table.partition_by)
    fields = []
    for field in kept.schema:
        name = field.name.removeprefix(TAKEN_PREFIX)
        if field.name in TAKEN or field.name in derived:
            continue
        fields.append(pa.field(name if name in TAKEN else field.name, field.type))
    return fields


def _grown(known: "pa.DataType", found: "pa.DataType") -> "pa.DataType":
    """What is known stays; a struct gets the fields that it has not."""
    import pyarrow as pa

    if not (pa.types.is_struct(known) and pa.types.is_struct(found)):
        return known
    fields = {field.name: field.type for field in known}
    for field in found:
        before = fields.get(field.name)
        fields[field.name] = field.type if before is None else _grown(before, field.type)
    return pa.struct([pa.field(name, type_) for name, type_ in fields.items()])


def _arrow(struct: "StructType") -> "pa.DataType":
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(struct, timezone="UTC")


def _spark(struct: "pa.DataType") -> "StructType":
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema(list(struct)))


def _ddl(type_: "pa.DataType") -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(type_).simpleString()
