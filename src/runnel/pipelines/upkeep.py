"""Upkeep of a pipeline's table between batches: small files compacted, old snapshots expired."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from runnel.pipelines import dead_letters, partitioning
from runnel.pipelines.kind import BETWEEN_EVERY_MS, Option, Report, Run
from runnel.pipelines.spec import Spec
from runnel.pipelines.units import span_text
from runnel.pipelines.writing import table_options
from runnel.spark.lake import lake_options
from runnel.spark.lake.lake_options import LakeOptions

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
LEAST_FILES: Final = 16
STAMP: Final = "maintained"
OPTION: Final = Option(
    "maintenance",
    "group",
    "what is done to the table between batches",
    inside=(
        Option("enabled", "flag", "whether it is done at all", default=True),
        Option(
            "target_file_bytes",
            "size",
            "the size that files are to have",
            default=lake_options.TARGET_FILE_BYTES,
            least=1 << 10,
            most=1 << 40,
        ),
        Option(
            "expire_after",
            "span",
            "how long readers can still see what was replaced",
            default=7 * DAY_MS,
            least=0,
        ),
        Option("every", "span", "how often", default=HOUR_MS, least=1000),
        Option(
            "least_files",
            "whole",
            "leave a partition alone that has fewer small files",
            default=LEAST_FILES,
            least=2,
        ),
    ),
)


def lake(spec: Spec) -> LakeOptions:
    """The table of a pipeline, for whoever reads or rewrites it. Raises TableError."""
    options = table_options(spec) | dict(spec.to.options)
    names = [each.name for each in partitioning.partitions(spec.to.partition_by)]
    if names:
        options["partitionBy"] = ",".join(names)
    found = lake_options.parse(options)
    if "maintenance" in spec.options.values:
        size = spec.options.group("maintenance").whole("target_file_bytes")
        found = replace(found, target_file_bytes=size)
    return found


def tables(spec: Spec) -> Iterator[LakeOptions]:
    """The table, and that of its dead letters."""
    whole = lake(spec)
    yield whole
    if spec.decode.format and not dead_letters.to_topic(spec) and not whole.catalog:
        letters = dead_letters.lake(spec)
        yield replace(letters, target_file_bytes=whole.target_file_bytes)


def between(run: Run) -> "tuple[Callable[[], Report | None] | None, int]":
    """What a stream does between batches, and how often."""
    asked = run.spec.options.group("maintenance")
    if not run.spec.to.table or not asked.flag("enabled"):
        return None, BETWEEN_EVERY_MS
    every_ms = asked.whole("every")
    stamp = run.notes / STAMP

    def work() -> Report | None:
        from runnel.spark.lake.maintenance import maintain

        if stamp.exists() and (time.time() - stamp.stat().st_mtime) * 1000 < every_ms:
            return None
        done = [
            maintain(
                table,
                expire_after_ms=asked.whole("expire_after"),
                least_files=asked.whole("least_files"),
            )
            for table in tables(run.spec)
        ]
        stamp.touch()
        worked = [each for each in done if each.rewritten_files or each.removed_files]
        if not worked:
            return None
        return Report(text="; ".join(f"maintenance: {each.said}" for each in worked))

    return work, every_ms


def explain(spec: Spec) -> Iterator[str]:
    asked = spec.options.group("maintenance")
    if spec.to.table and asked.flag("enabled"):
        yield (
            f"between batches, every {span_text(asked.whole('every'))}: small files become files of"
            f" {asked.whole('target_file_bytes') / 2**20:.0f} MB; what was replaced"
            f" {span_text(asked.whole('expire_after'))} ago is removed"
        )
