"""What a kind of pipeline is: how its file is checked, and what runs.

A kind describes itself with a `Kind`, in a module of `kinds/` named in `kinds.KINDS`. It is asked
to `check` a file without a broker and without Spark, and to `build` a `Flow` once Spark is up. The
runner does the rest: the checkpoint, triggers, retries, stopping, progress and status.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.pipelines.options import Option
from runnel.pipelines.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

BETWEEN_EVERY_MS = 10 * 60_000
__all__ = ["Flow", "Kind", "Option", "Problem", "Report", "Run", "Spec", "Stream", "Turn", "Turns"]


@dataclass(frozen=True)
class Problem:
    """What a kind does not accept in a file; `where` is a name in it, such as `to.table`."""

    where: str
    message: str


@dataclass(frozen=True)
class Report:
    """What a turn, or the work between batches, has done."""

    rows: int = 0
    text: str = ""  # one line for a person
    facts: Mapping[str, object] = field(default_factory=dict)  # the same for programs
    lag: int | None = None  # how many records are still to come, if that is known
    has_more: bool = False  # of a turn: call again at once, do not wait for the next


@dataclass(frozen=True)
class Run:
    """Given to `build`."""

    spec: Spec
    spark: "SparkSession"
    home: Path  # the state folder of this pipeline: files of the kind go below `notes/`
    query_id: str  # names this pipeline at the broker and in tables, the same at every start
    is_stopping: Callable[[], bool]  # long work of a kind ends soon after this says so
    tell: Callable[[str], None]  # one line to whoever watches

    @property
    def notes(self) -> Path:
        """A folder for what the kind itself keeps; it is made here."""
        folder = self.home / "notes"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True)
class Stream:
    """One streaming query.

    `writer` has neither trigger nor checkpoint nor query id: the runner sets them. `between` is
    called by the runner while no batch runs: after a run that ends by itself, else every
    `between_every_ms`, for which the query is stopped and started again. Whatever it raises is
    told, and does not stop the pipeline. `rows_of` gives the records of a batch by its number where
    Spark would count them more than once, because the batch is read more than once. `plan` is what
    `explain` shows where the writer's own rows are not all there is to it.
    """

    writer: "DataStreamWriter"
    between: Callable[[], Report | None] | None = None
    between_every_ms: int = BETWEEN_EVERY_MS
    rows_of: Callable[[int], int | None] | None = None
    plan: "DataFrame | None" = None


@dataclass(frozen=True)
class Turn:
    number: int  # from 0, in this process


@dataclass(frozen=True)
class Turns:
    """Work that is not one streaming query: `step` is called once, or again at every interval.

    A step is retried as a whole after a failure, so what it does must bear being done twice.
    """

    step: Callable[[Turn], Report]
    between: Callable[[], Report | None] | None = None
    between_every_ms: int = BETWEEN_EVERY_MS


Flow = Stream | Turns


@dataclass(frozen=True)
class Kind:
    name: str
    summary: str  # one line, for `init --list`
    template: str  # the YAML that `init` writes, commented; `NAME` stands for the pipeline's
    check: Callable[[Spec], Iterable[Problem]]
    build: Callable[[Run], Flow]
    options: tuple[Option, ...] = ()
    guarantee: str = "each record exactly once"
    explain: Callable[[Spec], Iterable[str]] | None = None  # more lines for `explain`
    python: str = ""  # what `init` writes to transforms.py, where that helps
    infers_schema: bool = False  # `decode.schema` may be left out; `check` says when it may not
    uses_spark: bool = True  # else `Run.spark` must not be touched, and no JVM is started
