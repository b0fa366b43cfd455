"""Rows that are written while somebody reads: whole, or not at all."""

import mmap
import os
import threading

from runnel.broker.shared_rows import NO_ROW, SharedNames, SharedRows, shortened, write_facts
from runnel.exporter.layout import (
    DIRS,
    FACTS_BYTES_MAX,
    FILE_BYTES,
    NAME_BYTES_MAX,
    PARTITIONS,
    PLAIN_BYTES,
    PLAIN_WORDS,
    PartitionRow,
    Slot,
)
from runnel.exporter.reading import Snapshot, read_rows
from runnel.metrics import Metrics

WIDTH = len(PartitionRow._fields)


def shared_metrics() -> Metrics:
    file = os.memfd_create("test")
    os.ftruncate(file, FILE_BYTES)
    metrics = Metrics(mmap.mmap(file, FILE_BYTES))
    os.close(file)
    return metrics


def view(metrics: Metrics) -> memoryview:
    assert metrics.shared is not None
    return memoryview(metrics.shared)


def snapshot(metrics: Metrics) -> Snapshot:
    metrics.publish()
    return Snapshot(view(metrics))


def test_every_word_that_changes_is_published_and_the_others_stay() -> None:
    metrics = shared_metrics()
    metrics.publish()
    published = view(metrics)[:PLAIN_BYTES].cast("q")
    for value in (1, 2**40, -1, 0):
        for word in range(0, PLAIN_WORDS, 37):
            metrics.slots[word] = value
            metrics.publish()
            assert list(published) == metrics.slots
    metrics.slots[-1] = 7
    metrics.publish()
    assert published[PLAIN_WORDS - 1] == 7


def test_a_row_that_is_half_written_is_left_out() -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    rows = SharedRows(metrics.shared, PARTITIONS, metrics)
    for number in (1, 2, 3):
        rows.write(rows.take(), *[number] * WIDTH)
    view(metrics)[PARTITIONS.at : PARTITIONS.at + 24].cast("q")[1] += 1  # its writer has begun
    words = memoryview(read_rows(view(metrics), PARTITIONS, 3)).cast("q")
    assert list(words) == [1] * WIDTH + [0] * WIDTH + [3] * WIDTH


def test_no_row_is_ever_torn_while_a_writer_runs() -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    rows = SharedRows(metrics.shared, PARTITIONS, metrics)
    count = 50
    for _ in range(count):
        rows.take()
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            rows.write(number % count, *[number] * WIDTH)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(300):
            words = memoryview(read_rows(view(metrics), PARTITIONS, count)).cast("q")
            for row in range(count):
                assert len(set(words[row * WIDTH : (row + 1) * WIDTH])) == 1
    finally:
        stop.set()
        writer.join()


def test_a_row_that_outlives_its_name_gets_no_other() -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    names = SharedNames(metrics.shared, metrics)
    rows = SharedRows(metrics.shared, PARTITIONS, metrics)
    rows.write(rows.take(), names.take("old"), *[0] * (WIDTH - 1))
    assert names.take("old") == 1, "the same name has the same number"
    names.give_back("old")
    assert len(list(snapshot(metrics).partitions())) == 1, "somebody still uses it"
    names.give_back("old")
    assert names.take("new") == 2
    assert snapshot(metrics).names == {2: "new"}
    assert list(snapshot(metrics).partitions()) == []


def test_a_table_that_is_full_says_so_and_takes_again_what_is_given_back() -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    rows = SharedRows(metrics.shared, DIRS, metrics)
    taken = [rows.take() for _ in range(DIRS.row_count_max)]
    assert taken == list(range(DIRS.row_count_max))
    assert rows.take() == NO_ROW
    rows.give_back(7)
    assert (rows.take(), rows.take()) == (7, NO_ROW)


def test_long_names_are_cut_and_still_differ() -> None:
    one, other = "ä" * 300, "ä" * 301
    assert len(shortened(one)) <= NAME_BYTES_MAX
    assert shortened(one) != shortened(other)
    assert shortened(one).decode().startswith("ääää")
    assert shortened("short") == b"short"


def test_facts_that_do_not_fit_are_left_out_whole() -> None:
    metrics = shared_metrics()
    facts = {("kind", str(number)): "x" * 1000 for number in range(100)}
    write_facts(metrics, {("a", "b"): "tabs\tand\nlines", **facts})
    assert metrics.slots[Slot.FACTS_BYTES] <= FACTS_BYTES_MAX
    found = snapshot(metrics).facts
    assert found["a", "b"] == "tabs and lines"
    assert set(found.values()) == {"tabs and lines", "x" * 1000}
    assert snapshot(metrics).fact("kind", 99) == "99", "what is not known is called by its number"
