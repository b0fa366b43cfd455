"""Plain Parquet: a folder of files, and the log of Spark's own file sink that says which count.

`spark.read.parquet` and `spark.readStream` follow that log, `_spark_metadata`, so to them a batch
is there as a whole or not at all. Readers that only list `*.parquet` see what has been renamed out
of the staging folder: never half a file, and never a row twice, because what an earlier try of the
batch renamed is removed before the batch is published anew.

Query, checkpoint and batch stand in the names of the files, so the log needs no other marker. Where
all files are replaced, one without rows goes on to carry each query's last.
"""

import re
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from runnel.spark import steps
from runnel.spark.lake import attempts, table_schema
from runnel.spark.lake.attempts import Attempt, Ledger
from runnel.spark.lake.kept_files import Kept, KeptFile, named, relative
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import NONE_YET, Query, check_folder, local_folder
from runnel.spark.lake.part_files import NO_BATCHES, Destination, WrittenFile, mark
from runnel.spark.lake.sink_log import SinkLog

if TYPE_CHECKING:
    import pyarrow as pa

LOG: Final = "_spark_metadata"
STAGED: Final = f"{attempts.FOLDER}/staged"
_SCHEMA: Final = "schema.arrow"
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_PARTITIONED: Final = b"runnel.partitionBy"
_NAMED: Final = re.compile(r"part-([0-9a-f]{12})-([0-9a-f]{12})-([0-9]{10})-")


class ParquetLakeTable:
    """See `LakeTable`."""

    listed = True

    def __init__(self, options: LakeOptions) -> None:
        self._options = options
        self._folder = local_folder(options.table)
        self._log = SinkLog(self._folder / LOG)
        self.data = self._folder / STAGED
        self.ledgers = self._folder / attempts.FOLDER
        self.where = f"Parquet table {self._folder}"
        if not (self._folder / LOG).is_dir():
            check_folder(self._folder, "Parquet")

    def destination(self, rows: "pa.Schema") -> Destination:
        written, _, partition_by = self._fit(rows)
        table_schema.check_partitions(partition_by, written)
        return Destination(
            folder=str(self.data),
            ledgers=str(self.ledgers),
            schema=written.serialize().to_pybytes(),
            partition_by=partition_by,
            hive_folders=True,
            compression=self._options.compression,
            target_file_bytes=self._options.target_file_bytes,
        )

    def _fit(self, rows: "pa.Schema") -> "tuple[pa.Schema, list[pa.Field], tuple[str, ...]]":
        asked = self._options.partition_by
        try:
            there, partition_by = self._schema()
        except FileNotFoundError:
            return rows, [], asked
        if asked and asked != partition_by:
            names = ",".join(partition_by) or "nothing"
            raise TableError(
                f"partitionBy={','.join(asked)}: {self.where} is partitioned by {names};"
                f" leave the option out, or write another table"
            )
        merge = self._options.merge_schema
        written, added = table_schema.fit(rows, there, merge=merge, where=self.where)
        return written, added, partition_by

    def last_batch(self, query: Query) -> int:
        last, checkpoint = NONE_YET, ""
        for path in self._log.paths():
            found = _NAMED.match(path.rpartition("/")[2])
            if found and found[1] == mark(query.name) and int(found[3]) > last:
                checkpoint, last = found[2], int(found[3])
        if last != NONE_YET and checkpoint not in map(mark, query.checkpoints):
            raise query.other_checkpoint(last, self.where)
        return last

    def publish(
        self,
        rows: "pa.Schema",
        files: Sequence[WrittenFile],
        query: Query | None,
        batch: int,
        *,
        overwrite: bool,
    ) -> None:
        self._remember(rows)
        number = self._log.next_number()
        for file in files:
            final = self._folder / file.path
            final.parent.mkdir(parents=True, exist_ok=True)
            (self.data / file.path).replace(final)
        steps.reached("renamed")
        added = [(self._folder / file.path, file.size_bytes) for file in files]
        if overwrite:
            self._replace(number, added)
        else:
            self._log.add(number, added, replace=False)

    def _replace(
        self, number: int, files: Sequence[tuple[Path, int]], gone: "set[str] | None" = None
    ) -> None:
        """The files of before go as well, since some readers list; noted first, as orphans are.

        With `gone` only those of them; the others stay.
        """
        there = self._log.sizes()
        stay = [(Path(path), size) for path, size in there if gone is not None and path not in gone]
        before = [relative(path, self._folder) for path, _ in there if gone is None or path in gone]
        ledger = Ledger(self.ledgers, Attempt.new("replaced", 0))
        for path in before:
            ledger.note(path)
        after = [*stay, *files]
        after += [
            self._mark(path, ledger)
            for path in _forgotten([path for path, _ in there], [str(path) for path, _ in after])
        ]
        self._log.add(number, after, replace=True)
        for path in before:
            self.remove(path)
        ledger.close()

    def _mark(self, path: str, ledger: Ledger) -> tuple[Path, int]:
        """A file without rows beside this one, that names the same batch; and its size."""
        import pyarrow.parquet as pq

        beside = Path(relative(path, self._folder))
        found = _NAMED.match(beside.name)
        assert found, path
        name = str(beside.with_name(f"{found[0]}00000-{uuid.uuid4().hex[:12]}-0000.snappy.parquet"))
        ledger.note(name)
        schema, partition_by = self._schema()
        staged, final = self.data / name, self._folder / name
        staged.parent.mkdir(parents=True, exist_ok=True)
        final.parent.mkdir(parents=True, exist_ok=True)
        rows = schema.empty_table().drop_columns(list(partition_by))
        pq.write_table(rows, staged, compression="snappy", store_schema=False)
        staged.replace(final)
        return final, final.stat().st_size

    def _schema(self) -> "tuple[pa.Schema, tuple[str, ...]]":
        """And the columns of partitions, which files do not have. Raises FileNotFoundError."""
        schema = table_schema.read((self.ledgers / _SCHEMA).read_bytes())
        names = (schema.metadata or {}).get(_PARTITIONED, b"").decode()
        return schema.remove_metadata(), tuple(names.split(",")) if names else ()

    def _remember(self, rows: "pa.Schema") -> None:
        """The schema for the next write to be checked against; it only ever grows."""
        path = self.ledgers / _SCHEMA
        _, added, partition_by = self._fit(rows)
        there = table_schema.read(path.read_bytes()) if path.exists() else rows
        schema = table_schema.grown(there, added)
        schema = schema.with_metadata({_PARTITIONED: ",".join(partition_by)})
        self.ledgers.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{uuid.uuid4().hex}")
        beside.write_bytes(schema.serialize().to_pybytes())
        beside.replace(path)

    def referenced(self, paths: set[str]) -> set[str]:
        return named(paths, self._log.paths())

    def remove(self, path: str) -> None:
        """From wherever it is: an earlier try may have come as far as to rename it."""
        (self.data / path).unlink(missing_ok=True)
        (self._folder / path).unlink(missing_ok=True)

    def kept(self) -> Kept | None:
        """One file of each query's last batch is pinned: by its name that batch is known."""
        try:
            schema, partition_by = self._schema()
        except FileNotFoundError:
            return None
        files = tuple(
            KeptFile(path, size, _values(relative(path, self._folder), len(partition_by)))
            for path, size in self._log.sizes()
        )
        pinned = frozenset(path for _, path in _last_of_each(f.path for f in files).values())
        return Kept(self.where, schema, partition_by, False, files, pinned)

    def replace(self, old: Sequence[KeptFile], new: Sequence[WrittenFile]) -> None:
        for file in new:
            final = self._folder / file.path
            final.parent.mkdir(parents=True, exist_ok=True)
            (self.data / file.path).replace(final)
        steps.reached("renamed")
        added = [(self._folder / file.path, file.size_bytes) for file in new]
        self._replace(self._log.next_number(), added, {file.path for file in old})

    def expire(self, older_than_ms: int) -> int:
        """Nothing: what was replaced is gone at once, since some readers list."""
        return 0


def _forgotten(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """A file of the last batch of each query of which none is left."""
    left = _last_of_each(after)
    return [
        path
        for query, (batch, path) in _last_of_each(before).items()
        if query not in left or left[query][0] < batch
    ]


def _last_of_each(paths: Iterable[str]) -> dict[str, tuple[int, str]]:
    """A file of the last batch of each query, with the batch, by the query's mark."""
    last: dict[str, tuple[int, str]] = {}
    for path in paths:
        found = _NAMED.match(path.rpartition("/")[2])
        if found and found[2] != mark(NO_BATCHES):
            last[found[1]] = max(last.get(found[1], (-1, "")), (int(found[3]), path))
    return last


def _values(path: str, count: int) -> tuple[str | None, ...]:
    """Of the partition columns, out of a path such as `day=2026-01-31/part-...`."""
    texts = [unquote(part.partition("=")[2]) for part in path.split("/")[:count]]
    return tuple(None if text == _NO_VALUE else text for text in texts)
