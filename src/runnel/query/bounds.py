"""From a filter of DuckDB's to the offsets, times and partitions that can satisfy it.

DuckDB hands a dataset its filters as an Arrow expression. Arrow does not show what one is made of,
but it knows when an expression cannot hold, given bounds of a column: that is how it skips files.
So the edge of what may match is searched for by halving; whatever Arrow cannot decide may match.
Everything that is read is filtered by the same expression afterwards: this only saves reading.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runnel.arrow.interval import Interval

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

LEAST_US: Final = -(1 << 62)  # far beyond any time that a record has
MOST_US: Final = 1 << 62
APART_MAX: Final = 32  # partitions that are looked into one by one: each takes some 50 ms
NOWHERE: Final = "/nowhere"  # nothing is ever read of it


class Bounds(NamedTuple):
    offsets: Interval = Interval()
    times_us: Interval = Interval()


class Pruner:
    """Of one filter over a dataset's schema."""

    def __init__(self, expression: "pc.Expression", schema: "pa.Schema") -> None:
        self._expression, self._schema = expression, schema
        self._text = str(expression)
        self._known: dict[int, Bounds | None] = {}

    def mentions(self, name: str) -> bool:
        """Whether a column of this name may be used; True for some that are not."""
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._text) is not None

    def bounds(self, partition: int) -> Bounds | None:
        """What can match in this partition; None if nothing does.

        A filter that does not ask for partitions is looked into once, one that does for each of the
        first few, and from then on for all together.
        """
        import pyarrow as pa

        everywhere = _anything()
        if not self.mentions("partition"):
            return self._bounds(0, everywhere)
        here = _equals("partition", pa.scalar(partition, pa.int32()))
        if not self._may_hold(here):
            return None
        if len(self._known) < APART_MAX:
            return self._bounds(partition, here)
        return self._bounds(-1, everywhere)

    def _bounds(self, slot: int, here: Any) -> Bounds | None:  # noqa: ANN401  # an expression
        if slot not in self._known:
            self._known[slot] = self._found(here)
        return self._known[slot]

    def _found(self, here: Any) -> Bounds | None:  # noqa: ANN401  # an expression
        offsets, times_us = Interval(), Interval()
        if self.mentions("offset"):
            offsets = self._interval("offset", here, 0, (1 << 63) - 1, _offset)
        if self.mentions("timestamp"):
            times_us = self._interval("timestamp", here, LEAST_US, MOST_US, _time)
        if offsets.least > offsets.most or times_us.least > times_us.most:
            return None
        return Bounds(offsets, times_us)

    def _interval(
        self,
        name: str,
        here: Any,  # noqa: ANN401  # an expression
        least: int,
        most: int,
        scalar: "Callable[[int], pa.Scalar]",
    ) -> Interval:
        def may_hold(first: int, last: int) -> bool:
            return self._may_hold(here & _between(name, scalar(first), scalar(last)))

        if not may_hold(least, most):
            return Interval(1, 0)
        low, high = least, most  # the least value up to which something may match
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if may_hold(least, middle) else (middle + 1, high)
        first, high = low, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if may_hold(middle, most) else (low, middle - 1)
        whole = Interval()
        return Interval(first if first > least else whole.least, low if low < most else whole.most)

    def _may_hold(self, given: Any) -> bool:  # noqa: ANN401  # an expression
        import pyarrow.dataset as ds

        kind, files = _nothing()
        fragment = kind.make_fragment(NOWHERE, files, partition_expression=given)
        dataset = ds.FileSystemDataset([fragment], self._schema, kind, files)
        return any(True for _ in dataset.get_fragments(filter=self._expression))


@cache
def _nothing() -> tuple[Any, Any]:
    import pyarrow.dataset as ds
    from pyarrow import fs

    return ds.ParquetFileFormat(), fs.LocalFileSystem()


def _offset(value: int) -> "pa.Scalar":
    import pyarrow as pa

    return pa.scalar(value, pa.int64())


def _time(value: int) -> "pa.Scalar":
    import pyarrow as pa

    return pa.scalar(value, pa.timestamp("us", tz="UTC"))


def _anything() -> Any:  # noqa: ANN401
    """What says nothing about any row."""
    import pyarrow.compute as pc

    return pc.scalar(True)


def _equals(name: str, value: "pa.Scalar") -> Any:  # noqa: ANN401
    import pyarrow.compute as pc

    return pc.field(name) == value


def _between(name: str, first: "pa.Scalar", last: "pa.Scalar") -> Any:  # noqa: ANN401
    import pyarrow.compute as pc

    return (pc.field(name) >= first) & (pc.field(name) <= last)
