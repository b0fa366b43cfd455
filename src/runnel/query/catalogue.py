"""The relations of a connection: made when they are first named, from topics and lake tables."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING

from runnel.arrow.errors import SourceError
from runnel.config.registry import suggestion
from runnel.query import lakes
from runnel.query.errors import QueryError
from runnel.query.json_shape import Column, quoted
from runnel.query.shapes import shape_of
from runnel.query.statements import may_show, unquoted_name
from runnel.query.topic_reading import Moment, Settings, TopicReader
from runnel.query.views import RAW, raw_view_of, view_of
from runnel.spark.reads.assignment import Logs, TopicFound
from runnel.spark.reads.brokers import Brokers
from runnel.spark.reads.logs import FolderLogs

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Catalogue:
    def __init__(
        self,
        duck: "DuckDBPyConnection",
        settings: Settings,
        *,
        schemas: Mapping[str, str],
        registry: str | None,
        lakes: Mapping[str, str],
        moment: Callable[[], Moment],
        lock: RLock,
    ) -> None:
        """Raises QueryError for a schema or a lake table that cannot be."""
        self._duck, self._settings, self._registry = duck, settings, registry
        self._moment, self._lock = moment, lock
        self._declared = {topic: self._parsed(topic, text) for topic, text in schemas.items()}
        self._lakes = dict(lakes)
        self._logs: Logs | None = None
        self._sources = 0
        self._empty: list[str] = []  # relations of topics that had no record to be judged by

    def topics(self) -> list[str]:
        """Raises SourceError."""
        with self._lock:
            return sorted(each.name for each in self._open().topics(None) if not each.is_internal)

    def relations(self) -> list[str]:
        return sorted(self._lakes)

    def renew(self, statement: str) -> None:
        """Before a statement: lake tables that it may name are those of now. Raises QueryError."""
        written = statement.lower()  # as SQL has names
        for name, path in self._lakes.items():
            if name.lower() in written:
                lakes.register(self._duck, name, path)
        for name in self._empty:
            self._duck.execute(f"drop view if exists {name}")
        self._empty.clear()

    def make(self, name: str, complaint: str) -> None:
        """The relation that a statement names. Raises QueryError, SourceError, ReadError."""
        if "/" in name:  # no topic has that in its name
            lakes.register(self._duck, name, name)
            self._lakes[name] = name
            return
        topic = self._found(name)
        if topic is None:
            raise QueryError(self._unknown(name, complaint))
        self._make_topic(name, topic)

    def has_topic(self, name: str) -> bool:
        """False as well where nobody answers."""
        with suppress(SourceError):
            return self._found(name) is not None
        return False

    def hint_of_quotes(self, statement: str) -> str:
        """What to add to the parser's complaint about a name that has to be in quotes."""
        try:
            name = unquoted_name(statement, self.topics())
        except SourceError:
            return ""
        return "" if name is None else f'\n\nWrite the topic in double quotes: "{name}"'

    def close(self) -> None:
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    def _make_topic(self, name: str, topic: TopicFound) -> None:
        from runnel.query.topic_dataset import TopicDataset

        reader = TopicReader(
            topic.name,
            self._open(),
            self._settings,
            self._moment,
            self._lock,
        )
        declared = self._declared.get(topic.name, ())
        tell = lambda note: self._moment().tell(f"{topic.name}: {note}")  # noqa: E731
        shape = shape_of(reader, declared, self._registry, tell)
        if shape.note and may_show([each.name for each in shape.columns], self._moment().statement):
            self._moment().tell(shape.note)
        source = f"__runnel_{self._sources}"
        self._sources += 1
        self._duck.register(source, TopicDataset(reader, shape.presenter))
        schema, dot, last = name.rpartition(".")
        if dot and name == topic.name and '"' not in name:
            self._duck.execute(f"create schema if not exists {quoted(schema)}")
            self._duck.execute(view_of(f"{quoted(schema)}.{quoted(last)}", source, shape))
        own = [quoted(name), f"{RAW}.{quoted(name)}"]
        self._duck.execute(view_of(own[0], source, shape))
        self._duck.execute(raw_view_of(quoted(name), source))
        if not shape.columns and not reader.ends().offsets:
            self._empty += own

    def _found(self, name: str) -> TopicFound | None:
        """By its name, or one that differs in case alone, as SQL has it. Raises QueryError."""
        with self._lock:
            found = self._open().topics(None)
        near = [each for each in found if each.name.lower() == name.lower()]
        if len(near) > 1:
            names = " and ".join(sorted(each.name for each in near))
            raise QueryError(
                f"topics {names} differ in case alone, and SQL takes their names for one: read them"
                " with `runnel consume`, or copy one to a topic of another name"
            )
        return near[0] if near else None

    def _unknown(self, name: str, complaint: str) -> str:
        topics = self.topics()
        known = [*topics, *self._lakes]
        hint = suggestion(name, known)
        if not hint:
            some = ", ".join(known[:8]) + (" and more" if len(known) > 8 else "")
            hint = f"; there are: {some}" if known else "; there are none yet"
        _, line, place = complaint.partition("\nLINE ")
        return f"there is no topic or table {name}{hint}" + (f"\n{line}{place}".rstrip())

    def _open(self) -> Logs:
        if self._logs is None:
            scan = self._settings.scan
            if "bootstrap.servers" in scan.client:
                self._logs = Brokers(scan.client, read_committed=scan.read_committed)
            else:
                assert scan.path is not None, "a broker or a path is given"
                self._logs = FolderLogs(scan.path, read_committed=scan.read_committed)
        return self._logs

    def _parsed(self, topic: str, text: str) -> tuple[Column, ...]:
        """Columns as DuckDB's own parser reads them."""
        import duckdb

        try:
            self._duck.execute(f"create or replace temp table __runnel_columns ({text})")
            rows = self._duck.execute("describe __runnel_columns").fetchall()
            self._duck.execute("drop table __runnel_columns")
        except duckdb.Error as error:
            raise QueryError(
                f"--schema {topic}: {text!r} is no list of columns, such as"
                f" 'id BIGINT, tags VARCHAR[]': {str(error).splitlines()[0]}"
            ) from None
        return tuple(Column(row[0], row[0], row[1]) for row in rows)
