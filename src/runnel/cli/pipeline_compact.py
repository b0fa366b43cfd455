"""`runnel pipeline compact`: small files of a table become large ones, old ones go."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.cli.output import CommandError, progress, show_json, show_line
from runnel.cli.pipeline_tables import failing, lake_of, table_folder, with_table

if TYPE_CHECKING:
    from runnel.spark.lake.lake_options import LakeOptions
    from runnel.spark.lake.maintenance import Upkeep


def compact(
    given: str, target: str | None, expire_after: str | None, *, dry_run: bool, as_json: bool
) -> None:
    tables, expire_ms = _tables(given)
    tables, expire_ms = _asked(tables, expire_ms, target, expire_after)
    done: dict[str, Upkeep] = {}
    for table in tables:
        found = _compact(table, expire_ms, dry_run=dry_run)
        if found.files_before:
            done[table.table] = found
    if as_json:
        show_json([{"table": table, **found._asdict()} for table, found in done.items()])
        return
    for name, found in done.items():
        show_line(f"{name}: {_would(found) if dry_run else found.said}")
    if not done:
        show_line("there is no table yet, or it has no files")


def _compact(table: "LakeOptions", expire_ms: int | None, *, dry_run: bool) -> "Upkeep":
    from runnel.spark.lake.maintenance import Progress, maintain

    name = Path(table.table).name
    with progress(f"compacting {name}", 1.0) as advance, failing(name, "compaction"):

        def heard(at: Progress) -> None:
            advance(at.done_bytes / max(1, at.total_bytes))

        return maintain(table, expire_after_ms=expire_ms, dry_run=dry_run, progress=heard)


def _tables(given: str) -> "tuple[list[LakeOptions], int | None]":
    from runnel.pipelines import upkeep

    if (folder := table_folder(given)) is not None:
        return [lake_of(folder)], 7 * upkeep.DAY_MS
    spec = with_table(given, "compact")
    expire_ms = 7 * upkeep.DAY_MS
    if "maintenance" in spec.options.values:
        expire_ms = spec.options.group("maintenance").whole("expire_after")
    return list(upkeep.tables(spec)), expire_ms


def _asked(
    tables: "list[LakeOptions]", expire_ms: int | None, target: str | None, expire: str | None
) -> "tuple[list[LakeOptions], int | None]":
    from runnel.pipelines.units import size_bytes, span_ms

    try:
        if expire is not None:
            expire_ms = None if expire == "never" else span_ms(expire)
        if target is not None:
            wanted = size_bytes(target)
            if wanted < 1024:
                raise ValueError(f"{target!r} is less than 1k")
            tables = [replace(each, target_file_bytes=wanted) for each in tables]
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    return tables, expire_ms


def _would(found: "Upkeep") -> str:
    return (
        f"would rewrite {found.rewritten_files} of {found.files_before} files,"
        f" {found.rewritten_bytes / 1e6:.1f} MB"
    )
