"""Lag from progress, as Spark writes it."""

from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryProgress

from runnel.spark import LagListener
from runnel.spark.lag import QueryState, state_of
from runnel.types import TopicPartition

SOURCE: dict[str, Any] = {
    "description": "runnel",
    "startOffset": None,
    "endOffset": {"t": {"0": 5, "1": 7}, "@topicIds": {"t": "x"}},
    "latestOffset": {"t": {"0": 25, "1": 7, "2": 3}, "@topicIds": {"t": "x"}},
    "numInputRows": 4,
    "inputRowsPerSecond": 2.0,
    "processedRowsPerSecond": 8.0,
    "metrics": {},
}


def progress(**changes: Any) -> StreamingQueryProgress:  # noqa: ANN401  # fields of its JSON
    fields: dict[str, Any] = {
        "id": str(uuid4()),
        "runId": str(uuid4()),
        "name": 'say "hi"',
        "timestamp": "2026-11-16T00:15:22.754Z",
        "batchId": 9,
        "batchDuration": 500,
        "durationMs": {},
        "eventTime": {},
        "stateOperators": [],
        "sources": [SOURCE],
        "sink": {"description": "noop", "numOutputRows": 4, "metrics": {}},
        "numInputRows": 4,
        "inputRowsPerSecond": 2.0,
        "processedRowsPerSecond": 8.0,
        "observedMetrics": {},
    }
    return StreamingQueryProgress.fromJson({**fields, **changes})


def test_lag_is_what_is_there_and_not_read() -> None:
    state = state_of(progress())
    assert state.lag_by_partition == {
        TopicPartition("t", 0): 20,
        TopicPartition("t", 1): 0,
        TopicPartition("t", 2): 3,
    }
    assert state.lag == 23


@pytest.mark.parametrize("offset", [None, 7, "abc", {"logOffset": 3}])
def test_other_sources_have_none(offset: object) -> None:
    found = state_of(progress(sources=[{**SOURCE, "endOffset": offset, "latestOffset": offset}]))
    assert found.lag_by_partition == {}


def test_states_are_told_and_served() -> None:
    seen: list[QueryState] = []
    listener = LagListener(seen.append, port=0)
    try:
        listener.onQueryProgress(QueryProgressEvent(progress()))
        assert [state.lag for state in seen] == [23]
        assert listener.queries['say "hi"'].batch_id == 9
        with urlopen(f"http://127.0.0.1:{listener.port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        listener.close()
    name = r'query="say \"hi\""'
    assert f'runnel_spark_lag_records{{{name},topic="t",partition="0"}} 20\n' in text
    assert f"runnel_spark_batch_seconds{{{name}}} 0.5\n" in text
