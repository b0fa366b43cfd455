"""The options of `format("runnel-lake")`, checked before anything is written.

Spark hands options over as text under names in any case, together with a few of its own. An option
that is not known is refused with the nearest that is, because a misspelt one would be ignored.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

FORMATS: Final = ("delta", "iceberg", "parquet")
COMPRESSIONS: Final = ("snappy", "zstd", "lz4", "gzip", "none")
TARGET_FILE_BYTES: Final = 128 << 20
ORPHAN_AGE_MS: Final = 7 * 24 * 3600 * 1000
_SMALLEST_FILE_BYTES: Final = 1 << 10
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SPANS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_OWN: Final = (
    "table",
    "tableFormat",
    "partitionBy",
    "queryId",
    "batchId",
    "mergeSchema",
    "compression",
    "targetFileSize",
    "orphanAge",
    "mode",
    "deadLetterTable",
)
_SPARKS: Final = ("path", "checkpointLocation", "queryName")
_KNOWN: Final = {name.lower(): name for name in (*_OWN, *_SPARKS)}
_CATALOG: Final = "catalog."


class TableError(ValueError):
    """Rows cannot go into the table; the message names the option or column, and what to do."""


@dataclass(frozen=True)
class LakeOptions:
    """What the user asked for; pickles, since it travels to executors."""

    table: str
    format: str | None = None  # None: what the folder holds, else delta
    partition_by: tuple[str, ...] = ()
    query_id: str | None = None
    batch_id: int | None = None  # of a batch write that may run twice, as in foreachBatch
    merge_schema: bool = False
    compression: str = "snappy"
    target_file_bytes: int = TARGET_FILE_BYTES
    orphan_age_ms: int = ORPHAN_AGE_MS
    direct: bool = False  # rows are files that the source has written
    dead_letter_table: str | None = None  # with direct: where records go that cannot be read
    catalog: Mapping[str, str] = field(default_factory=dict)  # of Iceberg, for load_catalog


def parse(options: Mapping[str, str]) -> LakeOptions:
    """Raises `TableError` for what is missing, unknown or does not parse."""
    given = {name.lower(): value for name, value in options.items()}
    _refuse_unknown(given)
    table = given.get("table") or given.get("path")
    if not table:
        raise TableError(
            'option table is missing: .option("table", "/lake/orders"), or a path for start() or'
            " save()"
        )
    batch = given.get("batchid")
    if batch is not None and not batch.isdecimal():
        raise TableError(f"batchId={batch}: write a whole number that grows from write to write")
    if batch is not None and "queryid" not in given:
        raise TableError("batchId needs queryId: together they tell one write from another")
    if "deadlettertable" in given and given.get("mode", "").lower() != "direct":
        raise TableError("deadLetterTable is for mode=direct: elsewhere rows carry _error and _raw")
    return LakeOptions(
        table=table,
        format=_choice(given, "tableFormat", FORMATS),
        partition_by=_columns(given.get("partitionby", "")),
        query_id=given.get("queryid") or None,
        batch_id=None if batch is None else int(batch),
        merge_schema=_truth(given, "mergeSchema"),
        compression=_choice(given, "compression", COMPRESSIONS) or "snappy",
        target_file_bytes=_bytes(given, "targetFileSize", TARGET_FILE_BYTES),
        orphan_age_ms=_span_ms(given, "orphanAge", ORPHAN_AGE_MS),
        direct=_choice(given, "mode", ("rows", "direct")) == "direct",
        dead_letter_table=given.get("deadlettertable") or None,
        catalog={
            name.removeprefix(_CATALOG): value
            for name, value in given.items()
            if name.startswith(_CATALOG)
        },
    )


def dead_letters(options: LakeOptions) -> LakeOptions | None:
    """The table of dead letters: as the table is, but for its partitions."""
    if options.dead_letter_table is None:
        return None
    return replace(
        options, table=options.dead_letter_table, partition_by=(), dead_letter_table=None
    )


def is_known(name: str) -> bool:
    return name.lower() in _KNOWN or name.lower().startswith(_CATALOG)


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in given:
        if not is_known(name):
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"did you mean {_KNOWN[near[0]]}?" if near else f"there are {', '.join(_OWN)}"
            raise TableError(f"runnel-lake has no option {name}; {hint}")


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if len(set(names)) != len(names):
        raise TableError(f"partitionBy={text}: a column stands there twice")
    return names


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    value = given.get(name.lower())
    if value is None:
        return None
    if value.lower() not in choices:
        raise TableError(f"{name}={value}: write one of {', '.join(choices)}")
    return value.lower()


def _truth(given: Mapping[str, str], name: str) -> bool:
    return _choice(given, name, ("true", "false")) == "true"


def _bytes(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = _UNITS.get(found[2].removesuffix("b")) if found else None
    if found is None or unit is None or int(found[1]) * unit < _SMALLEST_FILE_BYTES:
        raise TableError(f"{name}={text}: write a size of at least 1k, such as 128m or 1g")
    return int(found[1]) * unit


def _span_ms(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    found = re.fullmatch(r"(\d+)\s*([a-z]+)", text.strip().lower())
    if found is None or found[2] not in _SPANS_MS:
        raise TableError(f"{name}={text}: write a time such as 12h or 7d")
    return int(found[1]) * _SPANS_MS[found[2]]
