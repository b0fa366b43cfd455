"""What a task of Spark makes of its rows, without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from runnel.logs import arrow_segments
from runnel.logs.arrow_segments import Made, segments_of
from runnel.logs.index import Index, Span
from runnel.logs.segment import Segment

Row = tuple[str, int, int]  # topic, partition, offset


def batch(rows: list[Row]) -> pa.RecordBatch:
    topics, partitions, offsets = zip(*rows, strict=True)
    values = [None if at % 10 == 9 else b"line %d" % at for at in offsets]
    columns = {
        "topic": pa.array(topics),
        "partition": pa.array(partitions, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([at * 1000 for at in offsets], pa.timestamp("us", tz="UTC")),
        "value": pa.array(values, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def of(topic: str, partition: int, start: int, end: int) -> list[Row]:
    return [(topic, partition, at) for at in range(start, end)]


def spans(made: list[Made]) -> list[tuple[str, int, int, int]]:
    return [(each.topic, each.info.partition, each.info.start, each.info.end) for each in made]


def test_rows_of_several_partitions(tmp_path: Path) -> None:
    batches = [
        batch(of("a", 0, 5, 10) + of("a", 1, 0, 3)),
        batch(of("a", 1, 3, 6)),
        batch(of("b", 1, 7, 9)),
    ]
    made = list(segments_of(iter(batches), tmp_path))
    assert spans(made) == [("a", 0, 5, 10), ("a", 1, 0, 6), ("b", 1, 7, 9)]
    with Segment(tmp_path / "a", made[0].info) as segment:  # the last of them has no value
        assert [(each.offset, each.timestamp_ms, each.value) for each in segment.records()] == [
            (at, at, b"line %d" % at) for at in range(5, 9)
        ]


def test_what_is_indexed_is_left_out(tmp_path: Path) -> None:
    index = Index(tmp_path, "a")
    first = list(segments_of(iter([batch(of("a", 0, 10, 20))]), tmp_path))
    index.commit([each.info for each in first])
    again = [batch(of("a", 0, 5, 15)), batch(of("a", 0, 15, 18)), batch(of("a", 0, 18, 30))]
    made = list(segments_of(iter(again), tmp_path))
    assert spans(made) == [("a", 0, 5, 10), ("a", 0, 20, 30)]
    index.commit([each.info for each in made])
    assert index.listed().covered(0) == [Span(5, 30)]
    assert list(segments_of(iter(again), tmp_path)) == []
    assert len(list(index.folder.iterdir())) == 5  # three segments, the list and its lock


def test_gaps_in_a_topic_are_covered(tmp_path: Path) -> None:
    batches = [batch(of("a", 0, 0, 5)), batch(of("a", 0, 8, 9))]
    assert spans(list(segments_of(iter(batches), tmp_path))) == [("a", 0, 0, 9)]


def test_segments_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_segments, "SEGMENT_LINES", 6)
    batches = [batch(of("a", 0, start, start + 4)) for start in range(0, 16, 4)]
    assert spans(list(segments_of(iter(batches), tmp_path))) == [("a", 0, 0, 8), ("a", 0, 8, 16)]


def test_a_task_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(of("a", 0, 0, 5))
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        list(segments_of(failing(), tmp_path))
    assert list((tmp_path / "a").iterdir()) == []
