"""Sessions: the intervals by themselves, and the operator in PySpark's tester, without a JVM."""

import random
from collections import defaultdict

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from runnel.pipelines.streams.session_intervals import Session, divided, merged
from runnel.pipelines.streams.session_processor import SessionProcessor

GAP_MS = 100


def sessions_of(times_ms: list[int], gap_ms: int) -> list[Session]:
    """As one would count them on paper: in the order of time."""
    found: list[list[int]] = []
    for at in sorted(times_ms):
        if found and at - found[-1][-1] <= gap_ms:
            found[-1].append(at)
        else:
            found.append([at])
    return [Session(run[0], run[-1], len(run)) for run in found]


@pytest.mark.parametrize("seed", range(10))
def test_pieces_merge_to_the_same_sessions_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    times = [rng.randrange(5000) for _ in range(60)]
    pieces: list[Session] = []
    for at in times:
        pieces = merged([*pieces, Session(at, at, 1)], GAP_MS)
    assert pieces == sessions_of(times, GAP_MS)
    over, open_ = divided(pieces, GAP_MS, 2500)
    assert [*over, *open_] == pieces
    assert all(session.end_ms + GAP_MS < 2500 for session in over)


def test_an_event_joins_two_sessions() -> None:
    assert merged([Session(0, 10, 2), Session(150, 160, 3), Session(80, 80, 1)], GAP_MS) == [
        Session(0, 160, 6)
    ]
    assert len(merged([Session(0, 10, 2), Session(111, 111, 1)], GAP_MS)) == 2


@pytest.mark.parametrize("seed", range(5))
def test_the_operator_tells_each_session_once(seed: int) -> None:
    rng = random.Random(seed)
    delay_ms = 300
    tester = TwsTester(
        SessionProcessor(GAP_MS), timeMode="EventTime", eventTimeExtractor=lambda row: row.at_ms
    )
    times: defaultdict[str, list[int]] = defaultdict(list)
    told: defaultdict[str, list[Session]] = defaultdict(list)
    now = 1_000_000

    def tell(rows: list[Row]) -> None:
        for row in rows:
            told[row.key].append(Session(row.start_ms, row.end_ms, row.events))

    for _ in range(40):
        newest = now
        for key in rng.sample(("a", "b", "c"), rng.randrange(1, 4)):
            came = [now - rng.randrange(delay_ms) for _ in range(rng.randrange(1, 5))]
            times[key] += came
            newest = max(newest, *came)
            tell(tester.test(key, [Row(at_ms=at) for at in came]))
        tell(tester.setWatermark(newest - delay_ms))
        now += rng.choice((30, 90, 400))
    tell(tester.setWatermark(now + 10_000))
    assert {key: sorted(found) for key, found in told.items()} == {
        key: sessions_of(found, GAP_MS) for key, found in times.items()
    }
