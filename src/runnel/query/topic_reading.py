"""One topic for DuckDB: who plans, reads and filters a scan of it.

The statement decides when offsets are looked up: once for each, so that two mentions of a topic
see the same records. DuckDB asks from threads of its own; questions to the cluster go one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.glancing import times_near
from runnel.arrow.local import open_range
from runnel.arrow.locating import Locator
from runnel.arrow.memory import keep_freed
from runnel.arrow.ranges import Range, Scan
from runnel.arrow.scan import read, read_from_broker
from runnel.arrow.tally import Tally
from runnel.query.bounds import Pruner
from runnel.query.feeding import fed
from runnel.query.planning import DISORDER_MS, Ends, Planned, ends_of, pruned
from runnel.query.presenting import Presenter
from runnel.spark.reads.assignment import Logs

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

CONSTANT: Final = frozenset({"topic", "partition"})


@dataclass
class Moment:
    """One statement: what it sees of topics, what it reads, what there is to say about it."""

    statement: str = ""
    tally: Tally = field(default_factory=Tally)
    ends: dict[str, Ends] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failure: BaseException | None = None
    planned_offsets: int = 0

    def tell(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


@dataclass(frozen=True)
class Settings:
    """The same for all topics of a connection."""

    scan: Scan
    disorder_ms: int | None = DISORDER_MS  # None: none is too much, read to the end
    threads: int = 2


class TopicReader:
    """Of one topic. `moment` gives that of the statement that runs."""

    def __init__(
        self,
        topic: str,
        logs: Logs,
        settings: Settings,
        moment: Callable[[], Moment],
        lock: RLock,
    ) -> None:
        self.topic = topic
        self._logs, self._settings, self._moment, self._lock = logs, settings, moment, lock
        self._locator = Locator(settings.scan)

    def ends(self) -> Ends:
        """Raises SourceError."""
        moment = self._moment()
        with self._lock:
            if self.topic not in moment.ends:
                moment.ends[self.topic] = ends_of(self._logs, self.topic)
            return moment.ends[self.topic]

    def sample(self, pieces: Sequence[Range]) -> "Iterator[pa.RecordBatch]":
        """Keys and values of these ranges as bytes. Raises SourceError, ReadError."""
        scan = self._glancing("key", "value")
        for piece in self._placed(pieces):
            yield from read(scan, piece, self._moment().tally)

    def batches(
        self, presenter: Presenter, wanted: Sequence[str], mask: "pc.Expression | None"
    ) -> "Iterator[pa.RecordBatch]":
        """The rows that the filter lets through, with the wanted columns of the presenter's.

        Plans at once, so that the caller hears of what cannot be planned. Raises SourceError.
        """
        try:
            return self._planned_read(presenter, wanted, mask)
        except BaseException as error:
            self._moment().failure = error  # DuckDB would tell of it in its own words
            raise

    def _planned_read(
        self, presenter: Presenter, wanted: Sequence[str], mask: "pc.Expression | None"
    ) -> "Iterator[pa.RecordBatch]":
        pruner = None if mask is None else Pruner(mask, presenter.schema)
        needed = [
            name
            for name in presenter.schema.names
            if name in wanted or (pruner is not None and pruner.mentions(name))
        ]
        pieces = self._planned(pruner)
        self._moment().planned_offsets += sum(each.piece.end - each.piece.start for each in pieces)
        if mask is not None and CONSTANT.issuperset(needed):
            pieces = [each for each in pieces if self._matches(each.piece, presenter, mask)]
            mask = None
        return self._read(presenter.taking(needed), wanted, pieces, mask)

    def _planned(self, pruner: Pruner | None) -> list[Planned]:
        whole = self.ends().whole(self.topic)
        if pruner is None:
            return [Planned(piece) for piece in self._placed(whole)]
        with self._lock:
            found = pruned(
                self._logs,
                whole,
                pruner.bounds,
                self._settings.disorder_ms,
                self._look,
                self._moment().tell,
            )
        placed = self._placed([each.piece for each in found])
        return [Planned(piece, each.times_ms) for piece, each in zip(placed, found, strict=True)]

    def _placed(self, pieces: Sequence[Range]) -> list[Range]:
        with self._lock:
            return self._locator.placed(pieces, self._logs.cluster)

    def _glancing(self, *columns: str) -> Scan:
        """Of a batch only what is asked for is touched; whoever reads it in earnest checks it."""
        given = self._settings.scan
        return replace(given, columns=columns, client={**given.client, "check.crcs": "false"})

    def _look(self, piece: Range) -> tuple[int, int] | None:
        """The least and the most timestamp of the first records of a range, if it has any."""
        import pyarrow.compute as pc

        if piece.start >= piece.end:
            return None
        tally = self._moment().tally
        (placed,) = self._placed([piece])
        if placed.place is not None:
            times = times_near(placed, tally)
            return None if times is None else (min(times), max(times))
        batch = next(iter(read(self._glancing("timestamp"), placed, tally)), None)
        if batch is None:
            return None
        edges = pc.min_max(batch.column(0).cast("int64")).as_py()
        return edges["min"] // 1000, edges["max"] // 1000

    def _matches(self, piece: Range, presenter: Presenter, mask: "pc.Expression") -> bool:
        """Of a filter that only asks for the topic or the partition."""
        import pyarrow as pa

        row = pa.table(
            {
                "topic": pa.array([piece.topic], pa.string()),
                "partition": pa.array([piece.partition], pa.int32()),
            }
        )
        return bool(row.filter(mask).num_rows)

    def _read(
        self,
        presenter: Presenter,
        wanted: Sequence[str],
        planned: Sequence[Planned],
        mask: Any,  # noqa: ANN401  # an expression, or None
    ) -> "Iterator[pa.RecordBatch]":
        keep_freed()
        moment = self._moment()
        scan = replace(self._settings.scan, columns=presenter.taken)
        counts = CONSTANT.issuperset(presenter.taken)

        def rows(each: Planned) -> "Iterator[pa.RecordBatch]":
            piece, times_ms = each
            here = replace(scan, timestamps_ms=times_ms, believes_headers=times_ms is not None)
            found = open_range(here, piece, moment.tally, headers_suffice=counts)
            raw = read_from_broker(here, piece, moment.tally) if found is None else found
            for batch in raw:
                shown = presenter.shown(batch)
                if mask is not None:
                    shown = shown.filter(mask)
                if shown.num_rows:
                    yield shown.select(list(wanted))

        try:
            yield from fed(rows, planned, self._settings.threads)
        except BaseException as error:
            if not isinstance(error, GeneratorExit):  # that is a query that has enough
                moment.failure = error
            raise
