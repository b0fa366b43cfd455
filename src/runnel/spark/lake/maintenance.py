"""Upkeep of a table: small files become large ones, and what nobody can read any more goes.

It may be killed at any moment and started again: new files are seen only by the commit that puts
them in the place of the old ones, and files that were never committed are swept by the next run.
Batches' numbers survive, so writers go on exactly once; writers on this machine wait for a commit
and for nothing else.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple

from runnel.spark import steps
from runnel.spark.lake import rewriting
from runnel.spark.lake.attempts import Attempt, Ledger, Sweeper, exclusive, only_upkeep
from runnel.spark.lake.kept_files import KeptFile
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import LakeTable, check_there, open_table
from runnel.spark.lake.part_files import REWRITTEN
from runnel.spark.lake.rewriting import Group

COMMIT_BYTES: Final = 4 << 30
"""Of files that one commit replaces: work of minutes that a kill would undo, and no more."""


class Upkeep(NamedTuple):
    """What was done, or would be."""

    files_before: int
    files_after: int
    rewritten_files: int
    rewritten_bytes: int
    removed_files: int
    took_ms: int

    @property
    def said(self) -> str:
        if not self.rewritten_files and not self.removed_files:
            return f"nothing to do: {self.files_before} files, none of them to be rewritten"
        return (
            f"{self.files_before} files became {self.files_after}"
            f" ({self.rewritten_files} rewritten, {self.rewritten_bytes / 1e6:.1f} MB),"
            f" {self.removed_files} old ones removed, in {self.took_ms / 1000:.1f} s"
        )


class Progress(NamedTuple):
    done_bytes: int
    total_bytes: int


def maintain(
    options: LakeOptions,
    *,
    expire_after_ms: int | None,
    least_files: int = 2,
    dry_run: bool = False,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Upkeep:
    """Compact to `options.target_file_bytes`, then expire. Raises TableError.

    Args:
        expire_after_ms: how long what was replaced stays for readers; None leaves all of it.
        least_files: partitions with fewer small files than that are left for another time.
    """
    table = open_table(options)
    if table.kept() is None:
        return Upkeep(0, 0, 0, 0, 0, 0)
    with nullcontext() if dry_run else only_upkeep(table.ledgers):
        return _maintained(options, expire_after_ms, least_files, dry_run, progress)


def _maintained(
    options: LakeOptions,
    expire_after_ms: int | None,
    least_files: int,
    dry_run: bool,
    progress: Callable[[Progress], None],
) -> Upkeep:
    started = time.monotonic()
    table = open_table(options)
    kept = table.kept()
    assert kept is not None, "it was there a moment ago"
    if not dry_run:
        with exclusive(table.ledgers):  # a kill may have come after the commit: the table is asked
            Sweeper(table.ledgers, table.remove, table.referenced).sweep(
                REWRITTEN, None, [], options.orphan_age_ms
            )
    work = rewriting.groups(kept, options.target_file_bytes, least_files=least_files)
    total_bytes = sum(group.size_bytes for group in work)
    rewritten = sum(len(group.files) for group in work)
    removed = 0
    if not dry_run:
        done_bytes = 0

        def heard(size_bytes: int) -> None:
            nonlocal done_bytes
            done_bytes += size_bytes
            progress(Progress(done_bytes, total_bytes))

        for turn in _turns(work):
            _replace(options, turn, heard)
        if expire_after_ms is not None:
            with exclusive(table.ledgers):
                removed = open_table(options).expire(expire_after_ms)
    after = open_table(options).kept()
    return Upkeep(
        files_before=len(kept.files),
        files_after=len(after.files) if after else 0,
        rewritten_files=rewritten,
        rewritten_bytes=total_bytes,
        removed_files=removed,
        took_ms=round((time.monotonic() - started) * 1000),
    )


def _turns(work: list[Group]) -> list[list[Group]]:
    """Groups for one commit each."""
    turns: list[list[Group]] = []
    size_bytes = COMMIT_BYTES
    for group in work:
        if size_bytes + group.size_bytes > COMMIT_BYTES:
            turns.append([])
            size_bytes = 0
        turns[-1].append(group)
        size_bytes += group.size_bytes
    return turns


def _replace(options: LakeOptions, work: list[Group], heard: rewriting.Heard) -> None:
    table: LakeTable = open_table(options)
    kept = table.kept()
    assert kept is not None, "it was there a moment ago"
    attempt = Attempt.new(REWRITTEN, 0)
    to = table.destination(kept.schema)
    new = [
        file
        for number, group in enumerate(work)
        for file in rewriting.rewrite(kept, group, to, attempt, number, heard)
    ]
    steps.reached("rewritten")
    with exclusive(table.ledgers):
        table = open_table(options)
        old = [file for group in work for file in group.files]
        _check_kept(table, old)
        check_there(table, new)
        table.replace(old, new)
        steps.reached("replaced")
        Ledger(table.ledgers, attempt).close()


def _check_kept(table: LakeTable, old: Sequence[KeptFile]) -> None:
    """What somebody else has replaced meanwhile is not replaced again: its rows would be there
    twice."""
    now = table.kept()
    there = {file.path for file in now.files} if now else set()
    gone = [file.path for file in old if file.path not in there]
    if gone:
        raise TableError(
            f"{len(gone)} of {len(old)} files of {table.where} were replaced by somebody else while"
            " they were compacted; nothing was committed, start again"
        )
