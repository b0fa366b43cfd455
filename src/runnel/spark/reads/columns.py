"""Which columns a read gives: those of `.schema(...)` if the user gave one, else all.

`.schema("offset LONG, value BINARY")` is how columns are pruned: what is not in it is neither
decoded nor sent. A schema that does not fit is refused here, on the driver.
"""

from typing import TYPE_CHECKING

from runnel.arrow.decoders import pinned
from runnel.arrow.decoding import Decoding
from runnel.arrow.errors import OptionError
from runnel.arrow.ranges import COLUMNS
from runnel.arrow.registry import RegistryError
from runnel.arrow.rows import spark_schema
from runnel.config.registry import suggestion
from runnel.spark.reads.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def all_columns(options: SourceOptions) -> tuple[str, ...]:
    return COLUMNS if options.include_headers else COLUMNS[:-1]


def decoding_of(options: SourceOptions) -> Decoding | None:
    """How values are decoded, with the registry's newest schema in it. Raises OptionError."""
    if options.decode is None:
        return None
    try:
        return pinned(options.decode, options.subscription.names or ())
    except RegistryError as error:
        raise OptionError(str(error)) from None


def columns_of(schema: "StructType", decode: Decoding | None) -> tuple[str, ...]:
    """The columns of that schema in its order. Raises OptionError for what does not fit."""
    names = tuple(schema.names)
    known = {field.name: field for field in spark_schema(COLUMNS, decode)}
    for field in schema:
        if field.name not in known:
            hint = suggestion(field.name, known) or f"; there are {', '.join(known)}"
            raise OptionError(f".schema(...): there is no column {field.name}{hint}")
        wanted = known[field.name].dataType
        if field.dataType != wanted:
            raise OptionError(
                f".schema(...): column {field.name} is {wanted.simpleString()}, not"
                f" {field.dataType.simpleString()}; cast it after the read"
            )
        if not field.nullable:
            raise OptionError(f".schema(...): column {field.name} must be nullable")
    if len(set(names)) != len(names) or not names:
        raise OptionError(".schema(...): name each column once, and at least one")
    return names
