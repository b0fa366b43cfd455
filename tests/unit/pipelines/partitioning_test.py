"""`partition_by`: names and expressions, and what is neither."""

import pytest

from runnel.pipelines.partitioning import Partition, is_plain, partition


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("shop", "shop"),
        ("day(timestamp)", "timestamp_day"),
        ("HOUR( at )", "at_hour"),
        ("bucket(16, key)", "key_bucket"),
        ("day(timestamp) as d", "d"),
        ("upper(country) as land", "land"),
    ],
)
def test_a_partition_has_a_column(text: str, name: str) -> None:
    assert partition(text).name == name


def test_a_column_needs_no_expression() -> None:
    assert partition("shop") == Partition("shop")
    assert is_plain(("shop", "day")) and not is_plain(("shop", "day(t)"))


@pytest.mark.parametrize("text", ["", "day()", "week(t)", "bucket(key)", "bucket(0, k)", "a b"])
def test_what_is_no_partition_says_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match="bucket"):
        partition(text)
