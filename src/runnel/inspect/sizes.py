"""How many things of which size there were: exact counts, until there are too many sizes."""

from collections import Counter
from collections.abc import Iterable

DISTINCT_MAX = 65_536
PRECISION = 1 << 10  # a rounded size is at most one in so many too large


class Sizes:
    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._is_rounded = False

    def add(self, sizes: Iterable[int]) -> None:
        self.counts.update(map(rounded, sizes) if self._is_rounded else sizes)
        if len(self.counts) > DISTINCT_MAX and not self._is_rounded:
            self._is_rounded = True
            exact, self.counts = self.counts, Counter()
            for size, count in exact.items():
                self.counts[rounded(size)] += count

    def add_all(self, other: "Sizes") -> None:
        self.counts.update(other.counts)

    @property
    def count(self) -> int:
        return self.counts.total()

    @property
    def total_bytes(self) -> int:
        return sum(size * count for size, count in self.counts.items())

    def percentiles(self, *shares: float) -> list[int]:
        """The smallest size that so large a share of all does not exceed; 0 of nothing."""
        wanted = [max(share * self.count, 1) for share in shares]
        found, seen = [0] * len(shares), 0
        for size, count in sorted(self.counts.items()):
            before, seen = seen, seen + count
            for at, rank in enumerate(wanted):
                if before < rank <= seen:
                    found[at] = size
        return found

    def by_powers_of_two(self) -> list[tuple[int, int]]:
        """Pairs of an upper bound, not in it, and how many are below it and not below its half."""
        powers: Counter[int] = Counter()
        for size, count in self.counts.items():
            powers[size.bit_length()] += count
        if not powers:
            return []
        return [(1 << power, powers[power]) for power in range(min(powers), max(powers) + 1)]


def rounded(size: int) -> int:
    """Up to the next size of which there are only so many between a power of two and the next."""
    step = max(1, (1 << size.bit_length()) // (2 * PRECISION))
    return -(-size // step) * step
