"""The contents of one file as rows for people and programs: batches and records, index entries...

A row is a flat dictionary that JSON takes as it is. Bytes that are UTF-8 become text, others an
object with `base64`. What is damaged is a row too, of the kind `damage`.
"""

import base64
from collections.abc import Iterator
from typing import NamedTuple

from runnel.errors import RunnelError
from runnel.inspect.walking import Batch, Damage, walk
from runnel.native.compression import codec_of
from runnel.native.records import MAX_OFFSET, decode
from runnel.ports import Disk
from runnel.storage.checkpoints import (
    LEADER_EPOCHS,
    META_PROPERTIES,
    PARTITION_METADATA,
    decode_epochs,
    decode_meta,
    decode_offsets,
    decode_partition_metadata,
    encode_id,
)
from runnel.storage.index import OffsetIndex, TimeIndex
from runnel.storage.producers import ProducerStates
from runnel.storage.segment import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX
from runnel.storage.transactions import TransactionIndex
from runnel.wire.batch import LOG_APPEND_TIME, crc_is_right

LEFTOVERS = (".deleted", ".cleaned", ".swap")
RECORDS_AT_ONCE = 10_000
BYTES_AT_ONCE = 64 << 20
DECOMPRESSED_MAX_BYTES = 1 << 30
LARGEST_LOG = 2**31 - 1  # of the positions in an index

Row = dict[str, object]


class Range(NamedTuple):
    """Offsets from one up to another, which is not in it."""

    first: int = 0
    before: int = MAX_OFFSET


def dump_file(disk: Disk, path: str, *, deep: bool = False, only: Range = Range()) -> Iterator[Row]:  # noqa: B008  # a constant
    """Raises OSError, ValueError for a damaged small file or one that is not of a data folder."""
    name = path.rpartition("/")[2]
    for ending in LEFTOVERS:
        name = name.removesuffix(ending)
    stem, dot, suffix = name.rpartition(".")
    if dot + suffix in (LOG, ".checkpoint"):
        yield from _dump_log(disk, path, deep, only)
        return
    data = disk.read_whole(path)
    base_offset = int(stem) if stem.isdecimal() else 0
    match dot + suffix:
        case _ if name == LEADER_EPOCHS:
            for epoch in decode_epochs(data, path):
                yield {"kind": "epoch", "epoch": epoch.epoch, "start_offset": epoch.start_offset}
        case _ if name == META_PROPERTIES:
            meta = decode_meta(data, path)
            yield {
                "kind": "identity", "cluster_id": meta.cluster_id, "node_id": meta.node_id,
                "directory_id": encode_id(meta.directory_id),
            }  # fmt: skip
        case _ if name == PARTITION_METADATA:
            yield {"kind": "topic", "topic_id": encode_id(decode_partition_metadata(data, path))}
        case _ if name.endswith("-offset-checkpoint"):
            # Kafka makes these files at its start and fills them later.
            for partition, offset in (decode_offsets(data, path) if data else {}).items():
                yield {"kind": "checkpoint", "partition": str(partition), "offset": offset}
        case _:
            yield from _dump_index(data, dot + suffix, base_offset, only, path)


def _dump_index(
    data: bytes, suffix: str, base_offset: int, only: Range, path: str
) -> Iterator[Row]:
    if suffix == INDEX:
        for offset, position in OffsetIndex.decode(data, base_offset, LARGEST_LOG).entries():
            if only.first <= offset < only.before:
                yield {"kind": "index", "offset": offset, "position": position}
    elif suffix == TIME_INDEX:
        for timestamp, offset in TimeIndex.decode(data, base_offset).entries():
            if only.first <= offset < only.before:
                yield {"kind": "timeindex", "timestamp": timestamp, "offset": offset}
    elif suffix == TXN_INDEX:
        for entry in TransactionIndex.decode(data, base_offset).entries:
            yield {"kind": "txnindex", **entry._asdict()}
    elif suffix == SNAPSHOT:
        yield from _dump_producers(ProducerStates.load(data))
    else:
        raise ValueError(f"{path} is not a file of a data folder that can be dumped")


def _dump_producers(states: ProducerStates) -> Iterator[Row]:
    for producer_id, producer in states.producers.items():
        last = producer.batches[-1] if producer.batches else None
        yield {
            "kind": "producer",
            "producer_id": producer_id,
            "producer_epoch": producer.epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_first_offset": producer.txn_first_offset,
            "last_timestamp": producer.last_timestamp,
            "first_sequence": -1 if last is None else last.first_sequence,
            "last_sequence": -1 if last is None else last.last_sequence,
            "last_offset": -1 if last is None else last.last_offset,
        }


def _dump_log(disk: Disk, path: str, deep: bool, only: Range) -> Iterator[Row]:
    file = disk.open(path)
    for item in walk(file, file.size()):
        if isinstance(item, Damage):
            yield {"kind": "damage", "position": item.position, "why": item.why}
            return
        if item.header.base_offset >= only.before:
            return
        if item.header.last_offset < only.first:
            continue
        yield _batch_row(item)
        if deep:
            yield from _record_rows(item, only)


def _batch_row(batch: Batch) -> Row:
    position, header, raw = batch
    codec = header.compression
    last_sequence = header.base_sequence
    if last_sequence >= 0:
        last_sequence = (last_sequence + header.last_offset_delta) & 0x7FFF_FFFF
    return {
        "kind": "batch",
        "position": position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "bytes": header.size,
        "codec": codec_of(codec).name.lower() if codec <= 4 else f"unknown {codec}",
        "timestamp_type": "log_append" if header.attributes & LOG_APPEND_TIME else "create",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
        "valid": crc_is_right(header, raw),
    }


def _record_rows(batch: Batch, only: Range) -> Iterator[Row]:
    """A batch that says more records than fit into memory is read in several runs."""
    from_offset = only.first
    while True:
        try:
            columns = decode(
                batch.raw, from_offset=from_offset, up_to_offset=only.before,
                max_records=RECORDS_AT_ONCE, max_bytes=BYTES_AT_ONCE, control=True,
                verify_crc=False, max_decompressed_bytes=DECOMPRESSED_MAX_BYTES,
            )  # fmt: skip
        except RunnelError as error:
            yield {"kind": "damage", "position": batch.position, "why": str(error)}
            return
        control = columns.batches[0].control if columns.batches else None
        for record in columns.rows():
            row: Row = {
                "kind": "record",
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": shown(record.key),
                "value": shown(record.value),
                "headers": [[name, shown(value)] for name, value in record.headers],
            }
            if control is not None:
                row["control_type"] = control.name.lower()
            yield row
        if columns.position == len(batch.raw) or columns.next_offset <= from_offset:
            return
        from_offset = columns.next_offset


def shown(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
