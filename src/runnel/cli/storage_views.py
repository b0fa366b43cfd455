"""How `runnel storage` shows what it found: tables, lines and documents."""

import dataclasses
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from runnel.cli.figures import size_text
from runnel.cli.logs import printable
from runnel.cli.output import Cell, note, show_fields, show_line, show_table
from runnel.inspect.describing import PartitionSummary, SegmentSummary
from runnel.inspect.dumping import Row
from runnel.inspect.folders import FolderFiles
from runnel.inspect.verifying import Checked, Finding
from runnel.storage.checkpoints import encode_id
from runnel.types import NO_TOPIC_ID

NOTICES_MAX = 10
DATETIME_MAX_MS = 253_402_300_799_999  # the end of the year 9999


def time_text(timestamp_ms: int) -> str:
    if not 0 <= timestamp_ms <= DATETIME_MAX_MS:
        return "" if timestamp_ms < 0 else str(timestamp_ms)
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"


def show_folder(found: FolderFiles, in_use: bool, described: Sequence[PartitionSummary]) -> None:
    fields: dict[str, Cell] = {"folder": found.path}
    if found.meta is not None:
        fields |= {
            "cluster id": found.meta.cluster_id,
            "broker id": found.meta.node_id,
            "stopped": _stopped(found, in_use),
        }
    log_bytes = sum(summary.files.log_bytes for summary in described)
    fields |= {
        "topics": len({summary.files.partition.topic for summary in described}),
        "partitions": len(described),
        "segments": sum(len(summary.segments) for summary in described),
        "logs": size_text(log_bytes),
        "indexes": size_text(sum(summary.files.index_bytes for summary in described)),
    }
    show_fields(fields)
    show_line("")
    for path, text in (found.damaged + found.notices)[:NOTICES_MAX]:
        note(f"{path}: {text}")


def _stopped(found: FolderFiles, in_use: bool) -> str:
    if in_use:
        return f"no: process {found.lock_pid} is at work"
    return "cleanly" if found.is_clean else "not cleanly: the next start reads what is not durable"


def show_partitions(described: Sequence[PartitionSummary]) -> None:
    columns = (
        "partition", "segments", "size", "start", "end", "epochs", "first", "last", "damage"
    )  # fmt: skip
    rows = [
        (
            str(summary.files.partition), len(summary.segments),
            size_text(summary.files.log_bytes), summary.log_start_offset, summary.log_end_offset,
            len(summary.epochs), time_text(summary.first_timestamp),
            time_text(summary.max_timestamp), _damage(summary.segments),
        )
        for summary in described
    ]  # fmt: skip
    _show_with_damage(columns, rows)


def show_segments(described: Sequence[PartitionSummary]) -> None:
    columns = (
        "partition", "base", "end", "bytes", "index", "timeindex", "first", "last", "damage"
    )  # fmt: skip
    rows = [
        (
            str(summary.files.partition), segment.base_offset, segment.next_offset, segment.size,
            _entries(segment.index_entries), _entries(segment.time_index_entries),
            time_text(segment.first_timestamp), time_text(segment.max_timestamp),
            _damage([segment]),
        )
        for summary in described
        for segment in summary.segments
    ]  # fmt: skip
    _show_with_damage(columns, rows)


def _show_with_damage(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """The last column is left out where there is none."""
    has_damage = any(row[-1] for row in rows)
    end = len(columns) - (0 if has_damage else 1)
    show_table(columns[:end], [row[:end] for row in rows])


def _entries(count: int) -> str:
    return "none" if count < 0 else str(count)


def _damage(segments: Sequence[SegmentSummary]) -> str:
    return "; ".join(
        f"{segment.base_offset:020d}.log at {segment.damage.position}: {segment.damage.why}"
        for segment in segments
        if segment.damage is not None
    )


def folder_document(
    found: FolderFiles, in_use: bool, described: Sequence[PartitionSummary]
) -> dict[str, object]:
    meta = found.meta
    return {
        "folder": found.path,
        "cluster_id": None if meta is None else meta.cluster_id,
        "broker_id": None if meta is None else meta.node_id,
        "directory_id": None if meta is None else encode_id(meta.directory_id),
        "clean_shutdown": found.is_clean,
        "in_use_by": found.lock_pid if in_use else None,
        "partitions": [_partition_document(summary) for summary in described],
        "notices": [notice._asdict() for notice in found.damaged + found.notices],
    }


def _partition_document(summary: PartitionSummary) -> dict[str, object]:
    files = summary.files
    return {
        "topic": files.partition.topic,
        "partition": files.partition.index,
        "topic_id": None if files.topic_id == NO_TOPIC_ID else encode_id(files.topic_id),
        "log_start_offset": summary.log_start_offset,
        "log_end_offset": summary.log_end_offset,
        "log_bytes": files.log_bytes,
        "index_bytes": files.index_bytes,
        "first_timestamp": summary.first_timestamp,
        "max_timestamp": summary.max_timestamp,
        "leader_epochs": [epoch._asdict() for epoch in summary.epochs],
        "producer_snapshots": list(files.snapshots),
        "segments": [
            {
                "base_offset": segment.base_offset,
                "next_offset": segment.next_offset,
                "bytes": segment.size,
                "first_timestamp": segment.first_timestamp,
                "max_timestamp": segment.max_timestamp,
                "index_entries": segment.index_entries,
                "time_index_entries": segment.time_index_entries,
                "damage": None if segment.damage is None else segment.damage._asdict(),
                "files": segment.files.sizes,
            }
            for segment in summary.segments
        ],
    }


def finding_line(finding: Finding) -> str:
    where = finding.path if finding.position < 0 else f"{finding.path} at {finding.position}"
    return printable(f"{where}: {finding.what}")


def checked_line(checked: Checked) -> str:
    looked_at = [
        _counted(checked.partitions, "partition"),
        _counted(checked.segments, "segment"),
        _counted(checked.batches, "batch", "batches"),
        _counted(checked.records, "record"),
        size_text(checked.bytes),
    ]
    if checked.missing_offsets:
        looked_at.append(_counted(checked.missing_offsets, "offset") + " missing")
    if checked.vanished:
        looked_at.append(_counted(checked.vanished, "segment") + " gone meanwhile")
    verdict = _counted(checked.findings, "finding") if checked.findings else "no findings"
    return f"{verdict}: {', '.join(looked_at)}"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def checked_document(checked: Checked, findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "checked": dataclasses.asdict(checked),
        "findings": [finding._asdict() for finding in findings],
    }


def show_row(row: Row) -> None:
    """A row of a dump on a line of its own."""
    kind = row["kind"]
    if kind == "batch":
        show_line(_batch_line(row))
    elif kind == "record":
        show_line(_record_line(row))
    elif kind == "damage":
        show_line(f"@{row['position']} DAMAGE {row['why']}")
    else:
        show_line("  ".join(f"{name} {value}" for name, value in row.items() if name != "kind"))


def _batch_line(row: Row) -> str:
    parts = [
        f"@{row['position']} offsets {row['base_offset']}-{row['last_offset']}",
        f"{row['records']} records",
        f"{row['bytes']} bytes",
        str(row["codec"]),
        f"{row['timestamp_type']} {time_text(int(str(row['max_timestamp'])))}",
        f"epoch {row['leader_epoch']}",
    ]
    if row["producer_id"] != -1:
        parts.append(f"producer {row['producer_id']}:{row['producer_epoch']}")
    if row["base_sequence"] != -1:
        parts.append(f"sequence {row['base_sequence']}-{row['last_sequence']}")
    parts += [name for name in ("transactional", "control") if row[name]]
    parts.append("crc ok" if row["valid"] else "CRC WRONG")
    return "  ".join(parts)


def _record_line(row: Row) -> str:
    parts = [f"  {row['offset']}", time_text(int(str(row["timestamp"])))]
    if "control_type" in row:
        return "  ".join([*parts, f"control {row['control_type']}"])
    headers = row["headers"]
    assert isinstance(headers, list)
    parts.append(f"key {_content(row['key'])}")
    parts += [f"{printable(name)}={_content(value)}" for name, value in headers]
    return "  ".join([*parts, f"value {_content(row['value'])}"])


def _content(value: object) -> str:
    """Text as it is, or in quotes if it could be mistaken for something else."""
    if value is None:
        return "null"
    if isinstance(value, str) and value.isprintable() and value not in ("", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)
