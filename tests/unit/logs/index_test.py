"""The index against plain reading: whatever lines and queries, the same is found.

The oracle looks at every line with `Filters.found`; `query_test` says what that is.
"""

import json
import string
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runnel.logs.filters import Filters, LogRecord
from runnel.logs.index import MERGED_COUNT, Index, Span
from runnel.logs.indexing import missing
from runnel.logs.lines import LEVELS
from runnel.logs.query import QueryError, parse
from runnel.logs.search import Searched, search
from runnel.logs.segment import LogIndexError, Segment, SegmentInfo, SegmentWriter
from runnel.logs.topics import rows_with

WORDS = [
    "payment",
    "10000000",
    "1.0E7",
    "failed",
    "Kraków",
    "user",
    "7",
    "77",
    "a",
    "x_y",
    "timed out",
    "1.5e3",
    "ß",
]
words = st.sampled_from(WORDS)
texts = st.one_of(
    st.lists(words, max_size=4).map(" ".join),
    st.text(max_size=12),
    st.text(string.printable, max_size=20),
)
scalars = st.one_of(words, texts, st.integers(-99, 99), st.booleans(), st.none(), st.floats())
documents = st.fixed_dictionaries(
    {},
    optional={
        "message": texts,
        "level": st.sampled_from([*LEVELS, "WARN", "odd", 30, None]),
        "service": st.sampled_from(["shop", "shop two", "bill"]),
        "logger": words,
        "exception": texts,
        "fields": st.dictionaries(st.one_of(words, texts), scalars, max_size=3),
        "user": scalars,
        "nested": st.fixed_dictionaries({"a": st.fixed_dictionaries({"b": scalars})}),
    },
)
values = st.one_of(
    documents.map(lambda document: json.dumps(document).encode()),
    documents.map(lambda document: json.dumps(document, ensure_ascii=False).encode(
        errors="surrogatepass")),
    texts.map(lambda text: text.encode(errors="replace")),
    st.binary(max_size=10),
    st.sampled_from([b'{"user": 1.0E7, "name": "payment"}', b'{"msg": "a", "user": 1.50e3}']),
).filter(bool)  # fmt: skip
terms = st.one_of(
    words,
    texts,
    st.lists(words, min_size=1, max_size=2).map(lambda some: f'"{" ".join(some)}"'),
    words.map(lambda word: f"-{word}"),
    words.map(lambda word: word[:2] + "*"),
    st.sampled_from(["/pay/", "-/[0-9]/", "/(?i)KRAK/"]),
)
queries = st.lists(terms, max_size=3).map(" ".join)


@st.composite
def filters(draw: st.DrawFn) -> Filters:
    try:
        query = parse(draw(queries))
    except QueryError:
        query = parse("")
    return Filters(
        query,
        draw(st.sampled_from([None, None, *LEVELS])),
        draw(st.sampled_from([(), (), ("shop",), ("bill", "shop two")])),
        draw(st.dictionaries(st.sampled_from(["user", "nested.a.b", "logger", "Kraków"]),
                             st.one_of(words, st.just("true")), max_size=1)),
        draw(st.sampled_from([None, None, 1005])),
        draw(st.sampled_from([None, None, 1009])),
    )  # fmt: skip


class Lines:
    """A source of records that are given, as a broker would give them."""

    topic_id = ""

    def __init__(self, records: list[LogRecord], start: int = 0) -> None:
        self.kept, self.start = records, start

    def bounds(self) -> dict[int, Span]:
        last = max((record.offset for record in self.kept), default=-1)
        return {0: Span(self.start, last + 1)}

    def at(self, timestamp_ms: int) -> dict[int, int]:
        later = [record.offset for record in self.kept if record.timestamp_ms >= timestamp_ms]
        return {0: min(later, default=self.bounds()[0].end)}

    def records(
        self, partition: int, span: Span, needle: bytes | None = None
    ) -> Iterator[list[LogRecord]]:
        found = [record for record in self.kept if span.start <= record.offset < span.end]
        if needle is not None:
            data, ends = b"".join(record.value for record in found).lower(), [0]
            for record in found:
                ends.append(ends[-1] + len(record.value))
            found = [found[row] for row in rows_with(needle, data, ends)]
        yield found


def numbered(some: list[bytes], step: int = 1) -> list[LogRecord]:
    """Their times go up and down a little."""
    return [
        LogRecord(0, at * step, 1000 + at + (3 if at % 4 == 1 else 0), value)
        for at, value in enumerate(some)
    ]


def indexed(index: Index, records: list[LogRecord], start: int, end: int) -> SegmentInfo:
    index.folder.mkdir(parents=True, exist_ok=True)
    with SegmentWriter(index.folder, 0, start) as writer:
        writer.add(record for record in records if start <= record.offset < end)
        return writer.finish(end)


def offsets(found: Searched) -> list[int]:
    return [hit.record.offset for hit in found.hits]


@given(st.lists(values, min_size=1, max_size=14), filters(), st.integers(1, 16), st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_finds_what_plain_reading_finds(
    tmp_path_factory: pytest.TempPathFactory,
    some: list[bytes],
    wanted: Filters,
    limit: int,
    data: st.DataObject,
) -> None:
    records = numbered(some, step=2)
    index = Index(tmp_path_factory.mktemp("index"), "logs")
    end = records[-1].offset + 1
    cuts = sorted(data.draw(st.lists(st.integers(0, end), min_size=2, max_size=3)))
    for start, stop in pairwise(cuts):
        if start < stop:
            index.commit([indexed(index, records, start, stop)])
    matching = [record for record in records if wanted.found(record)]
    newest = sorted(matching[-limit:], key=lambda record: (record.timestamp_ms, record.offset))
    found = search(wanted, index=index, source=Lines(records), limit=limit)
    assert offsets(found) == [record.offset for record in newest]
    assert found.is_cut is (len(matching) > limit)
    without = search(wanted, index=None, source=Lines(records), limit=limit)
    assert offsets(without) == offsets(found)


def lines(count: int) -> list[LogRecord]:
    return numbered([json.dumps({"message": f"line {at}"}).encode() for at in range(count)])


def test_context_crosses_segments_and_the_end_of_the_index(tmp_path: Path) -> None:
    records, index = lines(30), Index(tmp_path, "logs")
    for start, end in ((0, 10), (10, 20)):
        index.commit([indexed(index, records, start, end)])
    found = search(
        Filters(parse("/ (10|12|19)$/")),
        index=index,
        source=Lines(records),
        limit=5,
        context=(2, 2),
    )
    groups = [[hit.record.offset for hit in group] for group in found.groups]
    assert groups == [[8, 9, 10, 11, 12, 13, 14], [17, 18, 19, 20, 21]]
    assert [hit.record.offset for hit in found.groups[0] if hit.is_match] == [10, 12]
    assert (found.indexed_lines, found.scanned, found.to_scan) == (20, 10, 10)


def test_the_index_alone(tmp_path: Path) -> None:
    records, index = lines(30), Index(tmp_path, "logs")
    index.commit([indexed(index, records, 5, 10)])
    found = search(Filters(parse("line")), index=index, source=None, limit=3, context=(0, 1))
    assert offsets(found) == [7, 8, 9]


def test_partitions_are_merged_by_time(tmp_path: Path) -> None:
    index = Index(tmp_path, "logs")
    index.folder.mkdir(parents=True)
    for partition in range(3):
        with SegmentWriter(index.folder, partition, 0) as writer:
            writer.add(
                LogRecord(partition, at, at * 10 + partition, b"some line") for at in range(2000)
            )
            index.commit([writer.finish(2000)])
    found = search(Filters(parse("line")), index=index, source=None, limit=4)
    assert [hit.record.timestamp_ms for hit in found.hits] == [19982, 19990, 19991, 19992]
    assert found.is_cut and found.indexed_lines == 6000


def test_what_the_topic_has_deleted_is_not_found(tmp_path: Path) -> None:
    records, index = lines(30), Index(tmp_path, "logs")
    for start in (0, 10, 20):
        index.commit([indexed(index, records, start, start + 10)])
    kept = Lines(records[15:], start=15)
    found = search(Filters(), index=index, source=kept, limit=99)
    assert sorted(offsets(found)) == list(range(15, 30))
    assert index.expire({0: 15}) == 10
    assert [info.start for info in index.listed().segments] == [10, 20]
    assert len(list(index.folder.glob("*.seg"))) == 2


def test_the_same_lines_twice_stand_there_once(tmp_path: Path) -> None:
    records, index = lines(30), Index(tmp_path, "logs")
    index.commit([indexed(index, records, 10, 20)], batch=("q", 1))
    late = [indexed(index, records, start, end) for start, end in ((10, 20), (15, 25), (20, 30))]
    taken = index.commit(late, batch=("q", 1))
    assert [(info.start, info.end) for info in taken] == [(20, 30)]
    assert len(list(index.folder.glob("*.seg"))) == 2
    assert missing(index, {0: Span(0, 40), 1: Span(3, 5)}) == [
        (0, Span(0, 10)),
        (0, Span(30, 40)),
        (1, Span(3, 5)),
    ]
    assert index.listed().batches == {"q": 1}


def test_small_segments_become_one(tmp_path: Path) -> None:
    records, index = lines(2000), Index(tmp_path, "logs")
    for start in range(0, 2000, 200):
        index.commit([indexed(index, records, start, start + 200)])
    while index.merge():
        pass
    listed = index.listed()
    assert len(listed.segments) < MERGED_COUNT
    assert listed.covered(0) == [Span(0, 2000)] and listed.lines == 2000
    assert {path.name for path in index.folder.glob("*.seg")} == {
        info.file for info in listed.segments
    }
    found = search(Filters(parse("1777")), index=index, source=None, limit=9)
    assert offsets(found) == [1777]


def test_a_merge_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    records, index = lines(30), Index(tmp_path, "logs")
    old = [indexed(index, records, start, start + 10) for start in (0, 10)]
    index.commit(old)
    merged = indexed(index, records, 0, 20)
    index.expire({0: 10})
    assert index.commit([merged], old) == []
    assert [info.start for info in index.listed().segments] == [10]
    assert len(list(index.folder.glob("*.seg"))) == 1


def test_an_index_of_another_topic_or_version(tmp_path: Path) -> None:
    records, index = lines(3), Index(tmp_path, "logs")
    index.commit([indexed(index, records, 0, 3)], topic_id="aa")
    with pytest.raises(LogIndexError, match="--rebuild"):
        index.commit([], topic_id="bb")
    (index.folder / "index.json").write_text('{"format": 99}')
    with pytest.raises(LogIndexError, match="another version"):
        index.listed()
    for damaged in ("{", "[]", '{"format": 1}', '{"format": 1, "segments": [{}]}'):
        (index.folder / "index.json").write_text(damaged)
        with pytest.raises(LogIndexError, match="logs index logs --rebuild"):
            index.listed()
    (tmp_path / "file").touch()
    with pytest.raises(LogIndexError, match=r"Not a directory$"):
        Index(tmp_path / "file", "logs").listed()


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    records, index = lines(3000), Index(tmp_path, "logs")
    (info,) = index.commit([indexed(index, records, 0, 3000)])
    (index.folder / info.file).rename(tmp_path / "away")
    with pytest.raises(LogIndexError, match=rf"{info.file} is gone: .*logs index logs --rebuild"):
        search(Filters(), index=index, source=None, limit=1)
    (tmp_path / "away").rename(index.folder / info.file)
    path = index.folder / info.file
    data = bytearray(path.read_bytes())
    data[16384:] = bytes(len(data) - 16384)
    path.write_bytes(data)
    with Segment(index.folder, info) as segment, pytest.raises(LogIndexError, match=info.file):
        list(segment.records())
