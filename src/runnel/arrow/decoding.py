"""How values become typed columns: what to read them as, and what to do with those that do not fit.

Plain text and plain choices, so that it pickles and compares; schemas are parsed where they are
used. `decoded_fields` in `rows.py` says which columns come of it.
"""

from dataclasses import dataclass
from typing import Final

KINDS: Final = ("string", "json", "avro")
BAD_RECORDS: Final = ("fail", "null", "dlq")
ERROR_COLUMN: Final = "_error"
RAW_COLUMN: Final = "_raw"


class DecodeOptionError(ValueError):
    """An option of decoding is missing or wrong; the message names it."""


@dataclass(frozen=True)
class Decoding:
    """`badRecords=null` adds the columns `_error` (string) and `_raw` (binary) after the others."""

    kind: str  # string | json | avro
    schema: str = ""  # json: of Spark, as DDL or JSON; avro: the reader's; empty with a registry
    bad_records: str = "fail"  # or null, dlq
    dead_letter_topic: str | None = None  # for dlq
    nested: bool = False  # one struct `value` instead of a column per field
    registry: str | None = None  # URL: values begin with 0 and the id of the writer's schema
    subject: str | None = None  # whose latest schema is read as where `schema` is empty

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DecodeOptionError(f"decode={self.kind}: write one of {', '.join(KINDS)}")
        if self.bad_records not in BAD_RECORDS:
            raise DecodeOptionError(
                f"badRecords={self.bad_records}: write one of {', '.join(BAD_RECORDS)}"
            )
        if self.kind == "json" and not self.schema:
            raise DecodeOptionError(
                "decode=json needs valueSchema, such as 'id BIGINT, name STRING'"
            )
        if self.kind == "avro" and not (self.schema or self.registry):
            raise DecodeOptionError(
                "decode=avro needs valueSchema with an Avro schema, or schemaRegistry with a URL"
            )
        if (self.bad_records == "dlq") != (self.dead_letter_topic is not None):
            raise DecodeOptionError("badRecords=dlq and deadLetterTopic go together: set both")
