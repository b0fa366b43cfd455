"""Rows of a small table changed by a function, in one commit: for tables such as dead letters."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from runnel.spark import steps
from runnel.spark.lake.attempts import Attempt, Ledger, exclusive
from runnel.spark.lake.kept_files import read_all
from runnel.spark.lake.lake_options import LakeOptions
from runnel.spark.lake.lake_table import open_table
from runnel.spark.lake.part_files import NO_BATCHES, REWRITTEN, PartFiles, write_all

if TYPE_CHECKING:
    import pyarrow as pa


def overwrite(options: LakeOptions, changed: "Callable[[pa.Table], pa.Table]") -> int:
    """Puts what `changed` makes of the rows in their place; how many there are less.

    Writers wait meanwhile. Where nothing changes, nothing is written.
    """
    table = open_table(options)
    with exclusive(table.ledgers):
        table = open_table(options)
        kept = table.kept()
        if kept is None:
            return 0
        before = read_all(kept)
        after = changed(before)
        if after.num_rows == before.num_rows:
            return 0
        attempt = Attempt.new(REWRITTEN, 0)
        files = PartFiles(table.destination(kept.schema), attempt, NO_BATCHES, 0)
        written = write_all(files, after.to_batches())
        table.publish(kept.schema, written, None, 0, overwrite=True)
        steps.reached("overwritten")
        Ledger(table.ledgers, attempt).close()
        return int(before.num_rows - after.num_rows)
