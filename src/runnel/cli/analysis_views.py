"""How `runnel storage analyze` shows what it found: tables, a document, a picture."""

from collections.abc import Sequence
from typing import NamedTuple

from runnel.cli.figures import size_text
from runnel.cli.output import Cell, note, show_fields, show_line, show_table
from runnel.cli.storage_views import time_text
from runnel.inspect.analyzing import Analysis
from runnel.inspect.folders import PartitionFiles
from runnel.inspect.freeing import Freed
from runnel.inspect.kinds import Kinds
from runnel.inspect.plotting import Bar, Panel, svg
from runnel.inspect.sizes import Sizes

SHARES = (0.5, 0.9, 0.99, 1.0)
SHARE_NAMES = ("p50", "p90", "p99", "max")


class Analyzed(NamedTuple):
    folder: str
    partitions: list[tuple[PartitionFiles, Analysis]]
    kinds: Kinds | None
    top: int
    freed: list[tuple[PartitionFiles, Freed]] | None

    def total(self) -> Analysis:
        total = Analysis()
        for _, analysis in self.partitions:
            total.add_all(analysis)
        return total

    def by_topic(self) -> dict[str, Analysis]:
        topics: dict[str, Analysis] = {}
        for files, analysis in self.partitions:
            topics.setdefault(files.partition.topic, Analysis()).add_all(analysis)
        return topics


def show_analysis(result: Analyzed) -> None:
    total = result.total()
    fields: dict[str, Cell] = {
        "messages": total.messages,
        "batches": total.batches,
        "bytes in logs": f"{total.bytes} ({size_text(total.bytes)})",
        "with a key": f"{total.with_key} ({_share(total.with_key, total.messages)})",
        "null values": total.null_values,
        "headers": total.headers,
        "control records": total.control_records,
        "first": time_text(total.first_timestamp),
        "last": time_text(total.last_timestamp),
    }
    if total.unreadable_bytes:
        fields["unreadable"] = f"{total.unreadable_bytes} bytes: `runnel storage verify` says why"
    show_fields(fields)
    _show("topics", ("topic", "messages", "size", "p50", "p99", "max"), _topic_rows(result))
    _show("sizes in bytes", ("of", *SHARE_NAMES), _size_rows(total))
    codec_columns = ("codec", "batches", "messages", "share", "size", "uncompressed", "ratio")
    _show("compression", codec_columns, _codec_rows(total))
    file_rows = [
        (suffix, count, size_text(size)) for suffix, (count, size) in sorted(total.files.items())
    ]
    _show("files", ("file", "count", "size"), file_rows)
    if result.kinds is not None:
        by = result.kinds.by
        kind_rows = [
            (label, messages, _share(messages, total.messages), size_text(size))
            for label, messages, size in result.kinds.most(result.top)
        ]
        _show("kinds", (f"{by.source}:{by.name}", "messages", "share", "size"), kind_rows)
        if (left_out := len(result.kinds.messages) - len(kind_rows)) > 0:
            note(f"{left_out} more kinds: --top shows them")
    if result.freed is not None:
        freed_columns = ("partition", "segments freed", "of", "freed", "of size")
        _show("what the retention would free", freed_columns, _freed_rows(result.freed))


def _show(title: str, columns: tuple[str, ...], rows: Sequence[tuple[Cell, ...]]) -> None:
    show_line("")
    show_table(columns, rows, title)


def _topic_rows(result: Analyzed) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for topic, analysis in result.by_topic().items():
        p50, p99, largest = analysis.message_sizes.percentiles(0.5, 0.99, 1.0)
        size = size_text(analysis.bytes)
        rows.append((topic, analysis.messages, size, p50, p99, largest))
    return rows


def _size_rows(total: Analysis) -> list[tuple[Cell, ...]]:
    named = (
        ("message", total.message_sizes),
        ("key", total.key_sizes),
        ("value", total.value_sizes),
        ("batch", total.batch_sizes),
    )
    return [(name, *sizes.percentiles(*SHARES)) for name, sizes in named]


def _codec_rows(total: Analysis) -> list[tuple[Cell, ...]]:
    whole = sum(use.bytes for use in total.codecs.values())
    return [
        (
            codec, use.batches, use.messages, _share(use.bytes, whole), size_text(use.bytes),
            size_text(use.payload_bytes), round(use.ratio, 2),
        )
        for codec, use in sorted(total.codecs.items(), key=lambda item: -item[1].bytes)
    ]  # fmt: skip


def _freed_rows(freed: list[tuple[PartitionFiles, Freed]]) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = [
        (
            str(files.partition), one.segments, one.of_segments,
            size_text(one.bytes), size_text(one.of_bytes),
        )
        for files, one in freed
    ]  # fmt: skip
    if len(freed) > 1:
        whole = _sum([one for _, one in freed])
        rows.append(
            (
                "all", whole.segments, whole.of_segments,
                size_text(whole.bytes), size_text(whole.of_bytes),
            )
        )  # fmt: skip
    return rows


def _sum(freed: list[Freed]) -> Freed:
    return (
        Freed(*(sum(column) for column in zip(*freed, strict=True))) if freed else Freed(0, 0, 0, 0)
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def analysis_document(result: Analyzed) -> dict[str, object]:
    document: dict[str, object] = {"folder": result.folder, **_document(result.total())}
    document["topics"] = {topic: _document(one) for topic, one in result.by_topic().items()}
    if result.kinds is not None:
        document["by"] = f"{result.kinds.by.source}:{result.kinds.by.name}"
        document["kinds"] = [
            {"kind": label, "messages": messages, "bytes": size}
            for label, messages, size in result.kinds.most(result.top)
        ]
    if result.freed is not None:
        document["freed"] = {
            **_sum([one for _, one in result.freed])._asdict(),
            "partitions": {str(files.partition): one._asdict() for files, one in result.freed},
        }
    return document


def _document(analysis: Analysis) -> dict[str, object]:
    return {
        "messages": analysis.messages,
        "batches": analysis.batches,
        "bytes": analysis.bytes,
        "with_key": analysis.with_key,
        "without_key": analysis.messages - analysis.with_key,
        "null_values": analysis.null_values,
        "headers": analysis.headers,
        "control_records": analysis.control_records,
        "transactional_batches": analysis.transactional_batches,
        "unreadable_batches": analysis.unreadable_batches,
        "unreadable_bytes": analysis.unreadable_bytes,
        "first_timestamp": analysis.first_timestamp,
        "last_timestamp": analysis.last_timestamp,
        "message_bytes": _sizes_document(analysis.message_sizes),
        "key_bytes": _sizes_document(analysis.key_sizes),
        "value_bytes": _sizes_document(analysis.value_sizes),
        "batch_bytes": _sizes_document(analysis.batch_sizes),
        "codecs": {
            codec: {
                "batches": use.batches,
                "messages": use.messages,
                "bytes": use.bytes,
                "uncompressed_bytes": use.payload_bytes,
                "ratio": round(use.ratio, 3),
            }
            for codec, use in analysis.codecs.items()
        },
        "files": {
            suffix: {"count": count, "bytes": size}
            for suffix, (count, size) in analysis.files.items()
        },
    }


def _sizes_document(sizes: Sizes) -> dict[str, int]:
    figures = dict(zip(SHARE_NAMES, sizes.percentiles(*SHARES), strict=True))
    return {"total": sizes.total_bytes, **figures}


def plot(result: Analyzed) -> str:
    total = result.total()
    topics = sorted(result.by_topic().items(), key=lambda item: -item[1].bytes)
    panels = [
        Panel("bytes by topic", [Bar(t, a.bytes, size_text(a.bytes)) for t, a in topics]),
        Panel(
            "messages by size",
            [
                Bar(f"{bound // 2} to {bound - 1} bytes", count, str(count))
                for bound, count in total.message_sizes.by_powers_of_two()
            ],
        ),
        Panel(
            "bytes by codec",
            [
                Bar(codec, use.bytes, f"{size_text(use.bytes)}, ratio {use.ratio:.2f}")
                for codec, use in sorted(total.codecs.items(), key=lambda item: -item[1].bytes)
            ],
        ),
    ]
    if result.kinds is not None:
        kinds = result.kinds.most(result.top)
        title = f"messages by {result.kinds.by.source}:{result.kinds.by.name}"
        panels.append(Panel(title, [Bar(label, count, str(count)) for label, count, _ in kinds]))
    return svg(f"{result.folder}: {total.messages} messages, {size_text(total.bytes)}", panels)
