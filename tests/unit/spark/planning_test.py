"""Offsets to ranges: split and limited as Spark's Kafka source does it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.arrow.errors import OptionError
from runnel.arrow.ranges import Range
from runnel.spark.reads.offsets import Offsets, parse_offsets
from runnel.spark.reads.planning import Splitting, limited
from runnel.types import TopicPartition

A, B, C = (TopicPartition("t", index) for index in range(3))


def ranges(*sizes: int) -> list[Range]:
    return [Range("t", index, 10, 10 + size) for index, size in enumerate(sizes)]


def sizes(found: list[Range]) -> list[int]:
    return [each.end - each.start for each in found]


def test_without_options_a_range_per_partition_that_has_offsets() -> None:
    assert sizes(Splitting().split(ranges(5, 0, 7))) == [5, 7]


@pytest.mark.parametrize(
    ("splitting", "given", "expected"),
    [  # most are of Spark's own KafkaOffsetRangeCalculatorSuite
        (Splitting(4), (4,), [1, 1, 1, 1]),
        (Splitting(4), (4, 20), [4, 6, 7, 7]),
        (Splitting(4), (0, 20), [5, 5, 5, 5]),
        (Splitting(4), (1, 1000), [1, 333, 333, 334]),
        (Splitting(1), (4, 20), [4, 20]),
        (Splitting(3), (10,), [3, 3, 4]),
        (Splitting(6), (10, 10, 1), [3, 3, 4, 3, 3, 4, 1]),
        (Splitting(9), (10000, 15000, 20000), [5000] * 9),
        (Splitting(6), (500, 12000, 15001), [500, 6000, 6000, 5000, 5000, 5001]),
        (Splitting(6), (1, 1, 10000), [1, 1, 2500, 2500, 2500, 2500]),
        (Splitting(None, 4), (5,), [2, 3]),
        (Splitting(None, 4), (4,), [4]),
        (Splitting(3, 4), (5, 5), [2, 3, 2, 3]),
    ],
)
def test_large_ranges_are_split(
    splitting: Splitting, given: tuple[int, ...], expected: list[int]
) -> None:
    assert sizes(splitting.split(ranges(*given))) == expected


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=6),
    st.one_of(st.none(), st.integers(1, 50)),
    st.one_of(st.none(), st.integers(1, 500)),
)
def test_what_is_split_covers_the_same_offsets(
    given_sizes: list[int], least: int | None, most: int | None
) -> None:
    whole = ranges(*given_sizes)
    found = Splitting(least, most).split(whole)
    assert all(each.start < each.end for each in found)
    for each in whole:
        position = each.start
        for part in found:
            if part.partition == each.partition:
                assert part.start == position
                position = part.end
        assert position == each.end
    if most is not None:
        assert max(sizes(found), default=0) <= most


def test_a_limit_is_shared_by_backlog_and_starves_nobody() -> None:
    starts, ends = {A: 0, B: 100, C: 7}, {A: 900, B: 199, C: 8}
    assert limited(100, starts, ends) == {A: 90, B: 109, C: 8}
    assert limited(1000, starts, ends) == ends
    assert limited(2, starts, ends) == {A: 1, B: 101, C: 8}


def test_a_limit_in_bytes_counts_what_an_offset_weighs() -> None:
    found = limited(1000, {A: 0, B: 0}, {A: 100, B: 100}, {A: 90.0, B: 10.0})
    assert found == {A: 10, B: 10}


def test_trap_02_offsets_are_always_written_in_the_same_order() -> None:
    one = Offsets({A: 1, TopicPartition("t", 10): 2, B: 3, TopicPartition("a", 0): 4}, {"t": "x"})
    two = Offsets(dict(reversed(list(one.by_partition.items()))), dict(one.topic_ids))
    text = json.dumps(one.as_dict())
    assert text == json.dumps(two.as_dict())
    assert text == '{"a": {"0": 4}, "t": {"0": 1, "1": 3, "10": 2}, "@topicIds": {"t": "x"}}'
    assert json.dumps(Offsets.of(json.loads(text)).as_dict()) == text


def test_offsets_of_a_checkpoint_can_be_pasted_as_an_option() -> None:
    text = '{"t":{"0":23,"1":-2},"@topicIds":{"t":"x"}}'
    found = parse_offsets("startingOffsets", text)
    assert found.by_partition == {A: 23, B: -2}
    assert found.topic_ids == {"t": "x"}


@pytest.mark.parametrize("text", ["[]", "3", '{"t":3}', '{"t":{"x":1}}', '{"t":{"0":"one"}}', ""])
def test_what_is_no_offset_json_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"startingOffsets=.*Expected e\.g\."):
        parse_offsets("startingOffsets", text)
