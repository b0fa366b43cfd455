"""Windows of traffic equal a record-by-record computation, however the log is cut into batches."""

import random
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from runnel.arrow.errors import OptionError
from runnel.pipelines.streams.traffic_windows import (
    OTHERS,
    PartitionWindows,
    Rules,
    Traffic,
    rounded,
)
from tests.support.traffic import Seen, windows_of

RULES = Rules(window_ms=1000, late_after_ms=2500, labels_max=4)


def log_of(seed: int, count: int) -> list[Seen]:
    """Time goes on with jumps, records lie behind it by up to twice what is allowed."""
    rng = random.Random(seed)
    now, found = 1_700_000_000_000, []
    for _ in range(count):
        now += rng.choice((0, 1, 40, 300)) if rng.random() < 0.99 else 20_000
        behind = rng.choice((0, 0, 0, rng.randrange(5000)))
        label = rng.choice(("a", "b", "c", "ä", "e", "f", None))
        found.append(Seen(now - behind, rng.choice((0, 7, 600, rng.randrange(100_000))), label))
    return found


def fed(records: list[Seen], cuts: list[int], *, reload: bool = True) -> list[Traffic]:
    windows, rows = PartitionWindows(RULES), list[Traffic]()
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        part = records[start:end]
        windows.add(
            np.array([record.timestamp_ms for record in part], dtype=np.int64),
            np.array([record.bytes for record in part], dtype=np.int64),
            pd.Series([record.label for record in part], dtype=object),
        )
        rows += windows.closed()
        if reload:
            windows = PartitionWindows.load(RULES, windows.dump())
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_windows_are_those_of_a_record_by_record_computation(seed: int) -> None:
    records = log_of(seed, 600)
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(1, len(records)), rng.randrange(12)))
    found = fed(records, cuts)
    assert len(found) > 20
    assert sorted(found, key=repr) == sorted(windows_of(records, RULES), key=repr)
    assert sum(row.late for row in found) > 5


def test_every_record_is_counted_once() -> None:
    records = log_of(5, 2000)
    end = Seen(records[-1].timestamp_ms + 1_000_000, 1, "end")
    found = fed([*records, end], [700])
    assert sum(row.records + row.late for row in found) == len(records)
    by_window: defaultdict[int, set[str | None]] = defaultdict(set)
    for row in found:
        by_window[row.window_ms].add(row.label)
    assert all(len(labels - {OTHERS, None}) <= RULES.labels_max for labels in by_window.values())
    assert any(OTHERS in labels for labels in by_window.values())


def test_open_windows_are_told_when_they_change() -> None:
    windows = PartitionWindows(RULES)
    changed = windows.add(
        np.array([5500, 5600]), np.array([10, 20]), pd.Series([None, None], dtype=object)
    )
    assert changed == {5000}
    assert list(windows.still_open(changed)) == [Traffic(5000, None, 2, 30, 10, 20, 0, False)]
    assert list(windows.closed()) == []


def test_windows_of_another_length_do_not_go_on() -> None:
    kept = PartitionWindows(RULES).dump()
    with pytest.raises(OptionError, match="window was 1 s before"):
        PartitionWindows.load(RULES._replace(window_ms=2000), kept)


def test_sizes_are_rounded_up_by_less_than_one_in_256() -> None:
    sizes = np.array([0, 1, 511, 512, 513, 5000, 99_999, (1 << 31) - 1])
    found = rounded(sizes)
    assert found[:4].tolist() == [0, 1, 511, 512]
    assert all(
        size <= other <= size * (1 + 1 / 256) for size, other in zip(sizes, found, strict=True)
    )
    many = rounded(np.arange(0, 10_000_000, 7))
    assert len(set(many.tolist())) < 5000
