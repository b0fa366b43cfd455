"""Records of the coordinators' own topics in words, in whatever version they were written."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Final

from runnel.coordinator.records import Kinds, decode_record, kinds_of
from runnel.native.columns import RecordColumns
from runnel.wire.messages import records
from tests.golden.wording import Wording

TRANSACTIONAL: Final = 0x10


def _all_kinds() -> tuple[Kinds, Kinds]:
    """Of groups, and of transactions: both count their types from 0."""
    groups, transactions = [], []
    for found in pkgutil.iter_modules(records.__path__):
        module = import_module(f"{records.__name__}.{found.name}")
        name = found.name.title().replace("_", "")
        pair = (getattr(module, f"{name}Key"), getattr(module, f"{name}Value"))
        if found.name == "transaction_log":
            transactions.append(pair)
        elif not found.name.startswith("share_s") and not found.name.startswith("share_u"):
            groups.append(pair)
    return kinds_of(*groups), kinds_of(*transactions)


def journal_lines(wording: Wording, columns: RecordColumns, topic: str) -> list[str]:
    kinds = _all_kinds()[topic == "__transaction_state"]
    rows = list(columns.rows())
    lines: list[str] = []
    for batch in columns.batches:
        head = f"batch of {batch.row_count}"
        if batch.control is not None:
            head = f"control {batch.control.name}"
        elif batch.header.attributes & TRANSACTIONAL:
            head += ", transactional"
        lines.append(head)
        for row in rows[batch.first_row : batch.first_row + batch.row_count]:
            assert row.key is not None
            record = decode_record(kinds, row.key, row.value)
            assert record is not None, row
            lines += _record_lines(wording, record.key, record.value, record.value_version)
    return lines


def _record_lines(
    wording: Wording, key: object, value: object | None, version: int
) -> Iterator[str]:
    yield f"  {type(key).__name__}"
    for line in wording.response(key, 0):
        yield f"    {line}"
    if value is None:
        yield "  deleted"
    else:
        yield f"  {type(value).__name__} v{version}"
        for line in wording.response(value, version):
            yield f"    {line}"
