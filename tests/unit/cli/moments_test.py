"""Places in a topic as people write them."""

import pytest

from runnel.cli.moments import Place, duration_ms, place_of
from runnel.cli.output import CommandError
from runnel.cli.produce import _timestamp
from runnel.client.admin import EARLIEST, LATEST

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("beginning", Place(edge=EARLIEST)),
        ("latest", Place(edge=LATEST)),
        ("17", Place(offset=17)),
        ("-17", Place(offset=-17)),
        ("-5m", Place(time_ms=NOW_MS - 300_000)),
        ("-1.5h", Place(time_ms=NOW_MS - 5_400_000)),
        ("-2d", Place(time_ms=NOW_MS - 172_800_000)),
        ("@1234", Place(time_ms=1234)),
        ("1960-01-01", Place(time_ms=0)),  # below, -1 would mean the end and -2 the start
        ("1969-12-31T23:59:59.999Z", Place(time_ms=0)),
        ("-36500d", Place(time_ms=0)),
        ("2026-01-31T12:00Z", Place(time_ms=1769860800000)),
        ("2026-01-31T14:00:00.5+02:00", Place(time_ms=1769860800500)),
    ],
)
def test_places(text: str, place: Place) -> None:
    assert place_of("--from", text, NOW_MS) == place


@pytest.mark.parametrize(
    "text", ["", "soon", "5m", "--5", "1e9", "2026-13-01", "@", "9" * 19, f"-{'9' * 400}d"]
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(CommandError, match="is no place in a topic; write 'beginning'"):
        place_of("--from", text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("90s", 90_000), ("1.5h", 5_400_000), ("2d", 172_800_000), ("PT1H30M", 5_400_000)],
)
def test_durations(text: str, expected_ms: int) -> None:
    assert duration_ms("--by-duration", text) == expected_ms


@pytest.mark.parametrize("text", ["", "1", "-5m", "P", "PT", "5 minutes", "9" * 20 + "d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(CommandError, match="is no duration; write 90s"):
        duration_ms("--by-duration", text)


def test_a_record_of_before_1970_cannot_be_sent() -> None:
    with pytest.raises(CommandError, match="is no time"):
        _timestamp("1960-01-01")
