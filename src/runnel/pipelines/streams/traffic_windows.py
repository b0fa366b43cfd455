"""The traffic of one partition in windows of time: records, bytes, sizes, and what came late.

Time is the partition's own: the newest timestamp so far, in the order of offsets, as Kafka Streams
has it. A record is late if it is older than that by more than `late_after`; its window may be
closed by then, so it is counted as late in the window in which it came, and nowhere else. A window
closes when the newest timestamp is `late_after` past its end. So every record is counted once, and
what a window says depends on the log alone: not on where batches begin, nor on what was killed.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.arrow.errors import OptionError
from runnel.pipelines.units import span_text

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

OTHERS: Final = "(others)"
VERSION: Final = 1
_LEAST: Final = -(1 << 62)  # before any time
# Sizes up to it are exact; above it there are half as many steps from one power of two to the next,
# so that a percentile is at most one in 256 too large.
_STEPS: Final = 512


class Rules(NamedTuple):
    window_ms: int
    late_after_ms: int
    labels_max: int  # in a window; those that come after them are counted as OTHERS

    def window_of(self, timestamp_ms: int) -> int:
        return timestamp_ms - timestamp_ms % self.window_ms


class Traffic(NamedTuple):
    """A row of the result, of one window and label."""

    window_ms: int  # where the window begins
    label: str | None
    records: int
    bytes: int
    p50_bytes: int
    p99_bytes: int
    late: int
    is_final: bool


@dataclass
class _Cell:
    bytes: int = 0
    late: int = 0
    sizes: Counter[int] = field(default_factory=Counter)

    def row(self, window_ms: int, label: str | None, is_final: bool) -> Traffic:
        p50, p99 = _percentile(self.sizes, 50), _percentile(self.sizes, 99)
        count = self.sizes.total()
        return Traffic(window_ms, label, count, self.bytes, p50, p99, self.late, is_final)


class PartitionWindows:
    """`add` records in the order of their offsets; `dump` and `load` for the time in between."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._newest_ms = _LEAST
        self._open: dict[int, dict[str | None, _Cell]] = {}

    def add(
        self, timestamps_ms: "NDArray[np.int64]", sizes: "NDArray[np.int64]", labels: "pd.Series"
    ) -> set[int]:
        """The windows that have changed."""
        import numpy as np

        if not len(timestamps_ms):
            return set()
        newest = np.maximum.accumulate(np.concatenate(([self._newest_ms], timestamps_ms)))
        before = newest[:-1]
        is_late = timestamps_ms < before - self._rules.late_after_ms
        came_ms = np.where(is_late, before, timestamps_ms)
        windows_ms = came_ms - came_ms % self._rules.window_ms
        for window_ms, label, late, size, count, bytes_ in _groups(
            windows_ms, labels, is_late, sizes
        ):
            cell = self._cell(window_ms, label)
            if late:
                cell.late += count
            else:
                cell.bytes += bytes_
                cell.sizes[size] += count
        self._newest_ms = int(newest[-1])
        return set(np.unique(windows_ms).tolist())

    def closed(self) -> Iterator[Traffic]:
        """The rows of windows to which nothing can be added any more; they are forgotten."""
        up_to_ms = self._newest_ms - self._rules.late_after_ms
        for window_ms in sorted(self._open):
            if window_ms + self._rules.window_ms <= up_to_ms:
                for label, cell in self._open.pop(window_ms).items():
                    yield cell.row(window_ms, label, is_final=True)

    def still_open(self, windows_ms: set[int]) -> Iterator[Traffic]:
        """Of these windows, as they are now."""
        for window_ms in sorted(windows_ms & self._open.keys()):
            for label, cell in self._open[window_ms].items():
                yield cell.row(window_ms, label, is_final=False)

    def dump(self) -> str:
        cells = [
            [window_ms, label, cell.bytes, cell.late, list(cell.sizes.items())]
            for window_ms, found in self._open.items()
            for label, cell in found.items()
        ]
        whole = [VERSION, self._rules.window_ms, self._newest_ms, cells]
        return json.dumps(whole, separators=(",", ":"))

    @classmethod
    def load(cls, rules: Rules, text: str) -> "PartitionWindows":
        """Raises OptionError for windows of another length, which cannot go on as these."""
        version, window_ms, newest_ms, cells = json.loads(text)
        if version != VERSION:
            raise OptionError(f"the state is of version {version}, and {VERSION} is known")
        if window_ms != rules.window_ms:
            raise OptionError(
                f"options.window was {span_text(window_ms)} before, and the windows that are open"
                " are of that length: set it so again, or begin anew with 'runnel pipeline reset'"
            )
        found = cls(rules)
        found._newest_ms = newest_ms
        for window_ms, label, bytes_, late, sizes in cells:
            cell = _Cell(bytes_, late, Counter(dict(sizes)))
            found._open.setdefault(window_ms, {})[label] = cell
        return found

    def _cell(self, window_ms: int, label: str | None) -> _Cell:
        window = self._open.setdefault(window_ms, {})
        cell = window.get(label)
        if cell is None:
            if label is not None and len(window) >= self._rules.labels_max:
                label = OTHERS
            cell = window.setdefault(label, _Cell())
        return cell


def _groups(
    windows_ms: "NDArray[np.int64]",
    labels: "pd.Series",
    is_late: "NDArray[np.bool_]",
    sizes: "NDArray[np.int64]",
) -> "Iterator[tuple[int, str | None, bool, int, int, int]]":
    """Window, label, lateness, rounded size; how many records; their bytes. As they first come."""
    import numpy as np
    import pandas as pd

    window_codes, windows = pd.factorize(windows_ms)
    label_codes, names = pd.factorize(labels)  # -1 for none
    size_codes, rounds = pd.factorize(rounded(sizes))
    codes = window_codes.astype(np.int64) * (len(names) + 1) + label_codes + 1
    codes = (codes * 2 + is_late) * len(rounds) + size_codes
    _, first, whose, counts = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    bytes_ = np.zeros(len(first), dtype=np.int64)
    np.add.at(bytes_, whose, sizes)
    order = np.argsort(first)
    rows = first[order]
    for window, label, late, size, count, total in zip(
        windows[window_codes[rows]].tolist(),
        label_codes[rows].tolist(),
        is_late[rows].tolist(),
        rounds[size_codes[rows]].tolist(),
        counts[order].tolist(),
        bytes_[order].tolist(),
        strict=True,
    ):
        yield window, None if label < 0 else str(names[label]), late, size, count, total


def rounded(sizes: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Up, to one of so few sizes that a count of each stays small."""
    import numpy as np

    exponents = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64)
    steps = np.maximum(1, (np.int64(1) << exponents) // _STEPS)
    found: NDArray[np.int64] = -(-sizes // steps) * steps
    return found


def _percentile(sizes: Counter[int], percent: int) -> int:
    """The smallest size that so large a share of all does not exceed; 0 of nothing."""
    wanted, seen = max(1, -(-sizes.total() * percent // 100)), 0
    for size in sorted(sizes):
        seen += sizes[size]
        if seen >= wanted:
            return size
    return 0
