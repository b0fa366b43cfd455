"""Windows of traffic as a stateful operator of Spark: one state for each topic and partition.

The state is one text, read once and written once in a batch.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from runnel.pipelines.streams.traffic_packing import unpack
from runnel.pipelines.streams.traffic_windows import PartitionWindows, Rules

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

OUTPUT: Final = (
    "topic STRING, partition INT, window_ms BIGINT, label STRING, records BIGINT, bytes BIGINT,"
    " p50_bytes BIGINT, p99_bytes BIGINT, late BIGINT, is_final BOOLEAN"
)


class TrafficProcessor(StatefulProcessor):
    """With `updates` also windows that are still open are told, every time they change."""

    def __init__(self, rules: Rules, *, updates: bool) -> None:
        self._rules = rules
        self._updates = updates

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("windows", "text STRING")

    def handleInputRows(
        self, key: tuple[str, int], rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        windows, changed = self._windows(), set[int]()
        # Several tasks may have read the partition, each a run of its offsets.
        for row in sorted(rows, key=lambda row: row.offset):
            records = unpack(row.packed)
            changed |= windows.add(
                _numbers(records.column("timestamp_ms")),
                _numbers(records.column("bytes")),
                records.column("label").to_pandas(),
            )
        found = list(windows.closed())
        if self._updates:
            found += windows.still_open(changed)
        self._state.update((windows.dump(),))
        for traffic in found:
            yield Row(topic=key[0], partition=key[1], **traffic._asdict())

    def close(self) -> None:
        pass

    def _windows(self) -> PartitionWindows:
        kept = self._state.get()
        if kept is None:
            return PartitionWindows(self._rules)
        return PartitionWindows.load(self._rules, kept[0])


def _numbers(column: "pa.Array") -> "NDArray[np.int64]":
    found: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return found
