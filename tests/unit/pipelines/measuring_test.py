"""What a batch's progress becomes: rows are records, however often Spark has read them."""

import json
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from runnel.pipelines.measuring import batch_of


def progress(rows: int, start: Any, end: Any) -> StreamingQueryProgress:  # noqa: ANN401  # any JSON
    source = {
        "description": "runnel",
        "startOffset": start,
        "endOffset": end,
        "latestOffset": end,
        "numInputRows": rows,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
    }
    return StreamingQueryProgress.fromJson(
        {
            "id": "8d5bd6b8-9d5f-4d6e-8fc8-4d5f57f8d0f5",
            "runId": "8d5bd6b8-9d5f-4d6e-8fc8-4d5f57f8d0f6",
            "name": "orders",
            "timestamp": "2026-11-16T00:00:00.000Z",
            "batchId": 3,
            "batchDuration": 2000,
            "durationMs": {},
            "stateOperators": [],
            "sources": [source],
            "sink": {"description": "sink", "numOutputRows": -1},
            "numInputRows": rows,
            "inputRowsPerSecond": 1.0,
            "processedRowsPerSecond": 1.0,
            "observedMetrics": {},
        }
    )


@pytest.mark.parametrize(
    ("rows", "start", "end", "counted"),
    [
        (20, {"t": {"0": 5, "1": 5}}, {"t": {"0": 10, "1": 10}}, 10),  # read twice
        (7, {"t": {"0": 5, "1": 5}}, {"t": {"0": 10, "1": 10}}, 7),  # with markers and gaps
        (30, None, {"t": {"0": 15}}, 15),  # the first batch
        (9, {"logOffset": 1}, {"logOffset": 2}, 9),  # of files
    ],
)
def test_a_record_is_counted_once(
    rows: int, start: dict[str, Any] | None, end: dict[str, Any], counted: int
) -> None:
    batch = batch_of(progress(rows, start and json.dumps(start), json.dumps(end)))
    assert (batch.number, batch.rows, batch.rows_per_second) == (3, counted, counted / 2)
