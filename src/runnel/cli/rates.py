"""What happened between two scrapes: rates of counters, and quantiles of histograms."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from runnel.cli.exposition import Scrape, labels_of, without

START_TIME: Final = "runnel_start_time_seconds"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: how many observations were at most each bound, and what they sum up to."""

    bounds: tuple[float, ...]  # rising, the last is infinity
    counts: tuple[float, ...]  # cumulative
    total: float

    @property
    def count(self) -> float:
        return self.counts[-1] if self.counts else 0.0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def quantile(self, quantile: float) -> float | None:
        """As Prometheus estimates it: evenly spread within a bucket; None without observations.

        Beyond the last finite bound all that is known is that bound.
        """
        if not self.count:
            return None
        rank = quantile * self.count
        low, below = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= rank and count > below:
                if bound == math.inf:
                    return low
                return low + (bound - low) * (rank - below) / (count - below)
            low, below = bound, count
        return low

    def since(self, before: "Distribution | None") -> "Distribution":
        if before is None or before.bounds != self.bounds or before.count > self.count:
            return self
        counts = (now - then for now, then in zip(self.counts, before.counts, strict=True))
        return Distribution(self.bounds, tuple(counts), self.total - before.total)


def distributions(scrape: Scrape, family: str) -> dict[str, Distribution]:
    """The histograms of a family, by their label text without `le`."""
    buckets: dict[str, list[tuple[float, float]]] = {}
    for label_text, count in scrape.of(f"{family}_bucket").items():
        bound = float(labels_of(label_text).get("le", "nan"))
        if not math.isnan(bound):
            buckets.setdefault(without(label_text, "le"), []).append((bound, count))
    sums = scrape.of(f"{family}_sum")
    found = {}
    for label_text, pairs in buckets.items():
        bounds, counts = zip(*sorted(pairs), strict=True)
        found[label_text] = Distribution(bounds, counts, sums.get(label_text, 0.0))
    return found


class Interval:
    """Two scrapes of one broker, and how long apart they are.

    Without an earlier one, or when the broker was started between the two, there are no rates:
    every question is then answered with None or with nothing, never with a guess.
    """

    def __init__(self, before: Scrape | None, after: Scrape, seconds: float) -> None:
        if before is not None and before.value(START_TIME) != after.value(START_TIME):
            before = None
        self.before = before if seconds > 0 else None
        self.after = after
        self.seconds = seconds

    def rates(self, name: str) -> dict[str, float]:
        """Per second, by label text. What is new since the earlier scrape counts from zero."""
        if self.before is None:
            return {}
        then = self.before.of(name)
        return {
            label_text: max(0.0, value - then.get(label_text, 0.0)) / self.seconds
            for label_text, value in self.after.of(name).items()
        }

    def rate(self, name: str) -> float | None:
        """Per second, over all labels."""
        if self.before is None or name not in self.after.series:
            return None
        return sum(self.rates(name).values())

    def distributions(self, family: str) -> dict[str, Distribution]:
        """What was observed between the scrapes; since the start, if there is no earlier one."""
        now = distributions(self.after, family)
        if self.before is None:
            return now
        then = distributions(self.before, family)
        return {key: value.since(then.get(key)) for key, value in now.items()}


def by_label(
    series: Mapping[str, float],
    label: str,
    combine: Callable[[float, float], float] = lambda one, other: one + other,
) -> dict[str, float]:
    """Values summed up (or combined otherwise) by one of their labels."""
    found: dict[str, float] = {}
    for label_text, value in series.items():
        key = labels_of(label_text).get(label, "")
        found[key] = combine(found[key], value) if key in found else value
    return found
