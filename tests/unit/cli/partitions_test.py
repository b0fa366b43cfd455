"""Partitions of topics as people write them."""

import pytest

from runnel.cli.output import CommandError
from runnel.cli.partitions import parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", ("orders", None)),
        ("orders:0", ("orders", [0])),
        ("orders:0,2", ("orders", [0, 2])),
        ("orders:1-3,7", ("orders", [1, 2, 3, 7])),
    ],
)
def test_parsed(text: str, expected: tuple[str, list[int] | None]) -> None:
    assert parsed("--topic", text) == expected


@pytest.mark.parametrize(
    "text", ["", ":0", "orders:", "orders:x", "orders:3-1", "orders:0-9999999", "orders:-1"]
)
def test_what_is_no_partition(text: str) -> None:
    with pytest.raises(CommandError, match="--topic"):
        parsed("--topic", text)
