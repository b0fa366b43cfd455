"""Whole numbers from a least to a most, both included, perhaps only some of them."""

from dataclasses import dataclass
from typing import Final

LEAST: Final = -(1 << 63)
MOST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Interval:
    least: int = LEAST
    most: int = MOST
    among: frozenset[int] | None = None  # only these, if given

    @property
    def has_least(self) -> bool:
        return self.least > LEAST

    @property
    def has_most(self) -> bool:
        return self.most < MOST

    @property
    def is_everything(self) -> bool:
        return not self.has_least and not self.has_most

    def __and__(self, other: "Interval") -> "Interval":
        both = [each.among for each in (self, other) if each.among is not None]
        among = frozenset.intersection(*both) if both else None
        return Interval(max(self.least, other.least), min(self.most, other.most), among)

    def __contains__(self, value: int) -> bool:
        is_between = self.least <= value <= self.most
        return is_between and (self.among is None or value in self.among)
