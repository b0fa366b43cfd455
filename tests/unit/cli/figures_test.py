"""Numbers as people read them."""

import pytest

from runnel.cli.figures import count_text, duration_text, seconds_text, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB"), (5e12, "4.5 TiB")],
)
def test_sizes(size: float, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (7, "7"), (0.25, "0.25"), (999, "999"), (999.7, "1.00k"), (12_345, "12.3k"),
     (4.56e6, "4.56M"), (-1500, "-1.50k"), (3e15, "3000T"), (float("inf"), "inf")],
)  # fmt: skip
def test_counts(count: float, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 us"), (12e-6, "12 us"), (0.0034, "3.40 ms"), (1.25, "1.25 s"), (90, "90 s"),
     (3725, "1 h 2 min")],
)  # fmt: skip
def test_times(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59, "59 s"), (60, "1 min"), (7260, "2 h 1 min"), (7201, "2 h"),
     (90_000, "1 d 1 h")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
