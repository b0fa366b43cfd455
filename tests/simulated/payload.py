"""Record values that can be told from each other, and from garbage."""

import hashlib
from random import Random

from runnel.errors import RunnelError
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.ports import Readable

RECORDS_MAX = 100_000
BYTES_MAX = 64 << 20


def record(value: str, timestamp_ms: int, padding_bytes: int) -> Record:
    """The body follows from the value, so a reader can tell whether it is whole."""
    return Record(value.encode(), _body(value, padding_bytes), timestamp_ms)


def _body(value: str, padding_bytes: int) -> bytes:
    seed = hashlib.blake2s(value.encode()).digest()
    return seed[:8] + (seed * (padding_bytes // len(seed) + 1))[:padding_bytes]


def batch(
    values: tuple[str, ...],
    chance: Random,
    timestamp_ms: int,
    *,
    codec: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    records = [record(value, timestamp_ms, chance.randrange(120)) for value in values]
    return bytes(
        encode(
            records, codec=codec, producer_id=producer_id, producer_epoch=producer_epoch,
            base_sequence=base_sequence, transactional=transactional,
        )
    )  # fmt: skip


def read(data: Readable, from_offset: int) -> list[tuple[int, str]]:
    """Offsets and values of whole batches; what is damaged becomes a value nobody sent."""
    try:
        columns = decode(
            data, from_offset=from_offset, max_records=RECORDS_MAX, max_bytes=BYTES_MAX
        )  # fmt: skip
    except RunnelError as error:
        return [(from_offset, f"damaged: {error}")]
    return [(row.offset, _value_of(row)) for row in columns.rows()]


def _value_of(row: Record) -> str:
    value = (row.key or b"").decode(errors="replace")
    if row.value is None or row.value != _body(value, len(row.value) - 8):
        return f"damaged: {value}"
    return value
