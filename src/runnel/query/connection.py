"""A DuckDB in memory whose relations are topics of a cluster, or of data folders, and lake tables.

A relation is made when a statement first names it: DuckDB says which it does not find. Topics are
looked at again by each statement, and all mentions in one statement see the same offsets.
"""

import atexit
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

from runnel.arrow.connections import ClientOptionError
from runnel.arrow.errors import SourceError
from runnel.arrow.losses import DataLossError, ReadError
from runnel.arrow.ranges import Scan
from runnel.arrow.registry import RegistryError
from runnel.client.cluster import addresses_of
from runnel.query import statements
from runnel.query.catalogue import Catalogue
from runnel.query.errors import FailedError, MissingExtraError, QueryError
from runnel.query.planning import DISORDER_MS
from runnel.query.result import Result
from runnel.query.topic_reading import Moment, Settings
from runnel.query.views import HEADER_MACRO, RAW

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
NAMES_MAX: Final = 100  # relations of one statement
POLL_TIMEOUT_MS: Final = 30_000
MEMORY_SHARE: Final = 4  # of this machine's memory, one part of so many is DuckDB's
MEMORY_LEAST_BYTES: Final = 256 << 20


class Connection:
    """For one statement at a time, from one thread. Close it, or use it as a context manager."""

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        path: str | None = None,
        schemas: Mapping[str, str] | None = None,
        registry: str | None = None,
        lakes: Mapping[str, str] | None = None,
        read_committed: bool = True,
        read_mode: str = "auto",
        timestamp_disorder_ms: int | None = DISORDER_MS,
        memory_limit_bytes: int | None = None,
        threads: int | None = None,
    ) -> None:
        """With `path` alone, data folders are read without their broker.

        `read_mode` is `auto` (segment files where they are on this machine), `broker` or `local`.
        `schemas` are columns by topic, such as `{"orders": "id BIGINT, tags VARCHAR[]"}`, and
        `lakes` folders by name. Raises QueryError; nothing is asked of a broker yet.
        """
        if bootstrap is None and path is None:
            bootstrap = DEFAULT_BOOTSTRAP
        self._threads = threads or os.cpu_count() or 1
        self._moment = Moment()
        self._spill = f"{tempfile.gettempdir()}/runnel-sql-{uuid.uuid4().hex}"
        self._duck = _opened(memory_limit_bytes or _memory_bytes(), self._threads, self._spill)
        client = {} if bootstrap is None else {"bootstrap.servers": _checked(bootstrap)}
        scan = Scan(
            client=client,
            path=path,
            read_committed=read_committed,
            read_mode=read_mode,
            poll_timeout_ms=POLL_TIMEOUT_MS,
        )
        self._catalogue = Catalogue(
            self._duck,
            Settings(scan, timestamp_disorder_ms, self._threads),
            schemas=schemas or {},
            registry=registry,
            lakes=lakes or {},
            moment=lambda: self._moment,
            lock=RLock(),
        )
        self._results: WeakSet[Result] = WeakSet()
        _open.add(self)

    def sql(self, statement: str, parameters: Sequence[object] | None = None) -> Result:
        """The result of the last statement; those before it are run first. Raises QueryError.

        `?` or `$1` in a single statement stand for the parameters.
        """
        texts = self._split(statement)
        for text in texts[:-1]:
            for _ in self._result(text, None).batches():
                pass
        return self._result(texts[-1], parameters)

    def topics(self) -> list[str]:
        """By name, without those that are the cluster's own. Raises QueryError."""
        with self._told(self._moment):
            return self._catalogue.topics()

    def relations(self) -> list[str]:
        """Lake tables, and what statements have made here. Raises QueryError."""
        return self._catalogue.relations()

    def interrupt(self) -> None:
        """End the statement that runs in another thread."""
        self._duck.interrupt()

    def close(self) -> None:
        """Results of it that were not taken are lost. Closing twice does nothing."""
        for result in self._results:
            result.drop()
        self._catalogue.close()
        self._duck.close()
        shutil.rmtree(self._spill, ignore_errors=True)
        _open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _split(self, statement: str) -> list[str]:
        import duckdb

        text, complaint = statement, ""
        for _ in range(statements.MENDED_MAX):
            try:
                found = [each.query for each in self._duck.extract_statements(text)]
            except duckdb.ParserException as error:
                complaint = complaint or str(error)
                better = statements.mended(text, str(error))
                if better is None:
                    break
                text = better
                continue
            if not found:
                raise QueryError("there is no statement; write one such as: select * from orders")
            return found
        hint = statements.hint_of_words(statement, complaint, self._reserved())
        raise QueryError(complaint + (hint or self._catalogue.hint_of_quotes(statement)))

    def _reserved(self) -> set[str]:
        rows = self._duck.execute(
            "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
        ).fetchall()
        return {row[0] for row in rows}

    def _result(self, text: str, parameters: Sequence[object] | None) -> Result:
        moment = self._moment = Moment(text)

        @contextmanager
        def running() -> Iterator[None]:
            self._moment = moment
            with self._told(moment):
                yield

        with running():
            self._catalogue.renew(text)
            relation = self._bound(text, parameters)
            is_question = text.lstrip(" \n\t(").lower().startswith(_QUESTIONS)
            if relation is not None and not is_question and list(relation.columns) in _NO_ROWS:
                counts = relation.fetchall()  # it has run by now
                relation = relation if counts else None
            result = Result(relation, moment, running)
        self._results.add(result)
        return result

    def _bound(self, text: str, parameters: Sequence[object] | None) -> "DuckDBPyRelation | None":
        import duckdb

        made: set[str] = set()
        values: Any = None if parameters is None else list(parameters)
        while True:
            try:
                return self._duck.sql(text, params=values)
            except duckdb.IOException as error:
                complaint, name = str(error), statements.missing_file(str(error))
                if name is None or name in made or not self._catalogue.has_topic(name):
                    raise
                made.add(name)
                self._catalogue.make(name, complaint)
            except (duckdb.CatalogException, duckdb.BinderException) as error:
                complaint = self._with_place(text, values, error)
                name = statements.missing_table(text, complaint)
                if name is None or name in made or len(made) >= NAMES_MAX:
                    hint = "" if name is None else self._catalogue.hint_of_quotes(text)
                    raise QueryError(complaint.rstrip() + hint) from None
                made.add(name)
                self._catalogue.make(name, complaint)

    def _with_place(self, text: str, values: Any, error: "duckdb.Error") -> str:  # noqa: ANN401
        """The complaint with a caret, which only this other way of running it has.

        It does not run: it is refused as it was before, before anything is done.
        """
        import duckdb

        try:
            self._duck.execute(text, values)
        except duckdb.Error as told:
            if type(told) is type(error):
                return str(told)
        return str(error)

    @contextmanager
    def _told(self, moment: Moment) -> Iterator[None]:
        """Raises QueryError for all that goes wrong and is not a mistake of ours."""
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            failure = moment.failure
            if type(error).__name__ == "ResourceInUseException":
                raise QueryError(_STILL_READ) from None
            if failure is None:
                raise QueryError(str(error).rstrip()) from None
            moment.failure = None
            if isinstance(failure, _EXPECTED):
                raise _failed(failure) from None
            raise failure from None
        except _EXPECTED as error:
            raise _failed(error) from None


_open: Final[WeakSet[Connection]] = WeakSet()


@atexit.register
def _close_all() -> None:
    """DuckDB complains at the end of a process of what was not closed."""
    for connection in list(_open):
        connection.close()


_STILL_READ: Final = (
    "a result of this connection is being read: take its rows to the end first, with fetchall() or"
    " arrow(), or open another Connection"
)
_QUESTIONS: Final = ("select", "from", "with", "values")
_NO_ROWS: Final = (["Count"], ["Success"])  # columns of what `create`, `set` and the like give
_EXPECTED: Final = (SourceError, ReadError, RegistryError, ClientOptionError, QueryError)


def sql(
    statement: str,
    *,
    bootstrap: str | None = None,
    path: str | None = None,
    parameters: Sequence[object] | None = None,
    **settings: Any,  # noqa: ANN401  # those of Connection
) -> Result:
    """One statement over topics; `Connection` is for many, and says what settings there are.

    Raises QueryError.
    """
    connection = Connection(bootstrap, path=path, **settings)
    try:
        return connection.sql(statement, parameters).when_taken(connection.close)
    except BaseException:
        connection.close()
        raise


def _failed(error: BaseException) -> QueryError:
    if isinstance(error, QueryError):
        return error
    text = str(error)
    if isinstance(error, DataLossError):
        text = (
            "records went while they were read, by retention or with their topic: run it again."
            f" {text[text.rfind('(') :]}"
        )
    return FailedError(text)


def _opened(memory_limit_bytes: int, threads: int, spill: str) -> "DuckDBPyConnection":
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"SQL over topics needs {error.name}: pip install 'runnel[sql]'"
        ) from None
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_limit_bytes >> 10}KiB",
        "threads": str(threads),
        "temp_directory": spill,
        "autoinstall_known_extensions": "false",
        "TimeZone": "UTC",
    }
    duck = duckdb.connect(":memory:", config=config)
    duck.execute("set python_enable_replacements = false")  # variables of ours are no relations
    duck.execute(f"create schema {RAW}")
    duck.execute(HEADER_MACRO)
    return duck


def _memory_bytes() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(total // MEMORY_SHARE, MEMORY_LEAST_BYTES)


def _checked(bootstrap: str) -> str:
    try:
        addresses_of(bootstrap)
    except ValueError as error:
        raise QueryError(
            f"bootstrap: {error}. Write it as localhost:9092, several with commas"
        ) from None
    return bootstrap
