"""What `runnel.pipelines.streams.traffic_windows` ought to find, computed record by record."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from runnel.pipelines.streams.traffic_windows import OTHERS, Rules, Traffic, rounded


class Seen(NamedTuple):
    timestamp_ms: int
    bytes: int
    label: str | None = None


def windows_of(records: Iterable[Seen], rules: Rules, *, closed: bool = True) -> list[Traffic]:
    """Of one partition in the order of offsets; without `closed` those that are open as well."""
    newest: int | None = None
    sizes: defaultdict[tuple[int, str | None], list[int]] = defaultdict(list)
    late: defaultdict[tuple[int, str | None], int] = defaultdict(int)
    labels: defaultdict[int, set[str | None]] = defaultdict(set)
    for record in records:
        is_late = newest is not None and record.timestamp_ms < newest - rules.late_after_ms
        came_ms = newest if is_late and newest is not None else record.timestamp_ms
        window_ms = came_ms // rules.window_ms * rules.window_ms
        label = record.label
        is_new = label not in labels[window_ms]
        if label is not None and is_new and len(labels[window_ms]) >= rules.labels_max:
            label = OTHERS
        labels[window_ms].add(label)
        if is_late:
            late[window_ms, label] += 1
        else:
            sizes[window_ms, label].append(record.bytes)
        newest = record.timestamp_ms if newest is None else max(newest, record.timestamp_ms)
    up_to_ms = (newest or 0) - rules.late_after_ms
    found = []
    for window_ms, label in {*sizes, *late}:
        is_final = window_ms + rules.window_ms <= up_to_ms
        if is_final or not closed:
            of = sorted(sizes[window_ms, label])
            p50, p99 = (_percentile(of, percent) for percent in (50, 99))
            row = Traffic(
                window_ms, label, len(of), sum(of), p50, p99, late[window_ms, label], is_final
            )
            found.append(row)
    return found


def _percentile(ordered: list[int], percent: int) -> int:
    if not ordered:
        return 0
    exact = ordered[max(1, -(-len(ordered) * percent // 100)) - 1]
    return int(rounded(np.array([exact], dtype=np.int64))[0])
