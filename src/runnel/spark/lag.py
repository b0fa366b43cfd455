"""How far streaming queries are behind, from their own progress: for dashboards and alerts.

    from runnel.spark import LagListener

    listener = LagListener(port=9405)  # http://localhost:9405/metrics, for Prometheus
    spark.streams.addListener(listener)
    listener.queries["orders"].lag  # records that are there and not yet read

The group of a query tells the same to Kafka's tools, without a listener. This one counts every
source whose offsets have Kafka's shape, `runnel` and `kafka` alike, and knows rates as well. It is
for sessions in this process; of Spark Connect the server would run it.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from runnel.spark.reads.offsets import Offsets
from runnel.types import TopicPartition

METRICS: Final = {
    "runnel_spark_lag_records": "Records that are there and not yet read, by partition.",
    "runnel_spark_input_rows_per_second": "Rows that came, by the last batch.",
    "runnel_spark_processed_rows_per_second": "Rows that went through, by the last batch.",
    "runnel_spark_batch_seconds": "How long the last batch took.",
    "runnel_spark_batch_id": "The number of the last batch.",
}


@dataclass(frozen=True)
class QueryState:
    """A query after its last batch."""

    query: str  # its name, or its id if it has none
    batch_id: int
    lag_by_partition: Mapping[TopicPartition, int]
    input_rows_per_second: float
    processed_rows_per_second: float
    batch_seconds: float

    @property
    def lag(self) -> int:
        return sum(self.lag_by_partition.values())


class LagListener(StreamingQueryListener):
    """Spark calls it from a thread of its own; what it reads may be read from any.

    Args:
        on_progress: called with the state of a query after each of its batches.
        port: where the states are served to Prometheus, on this machine only; 0 takes a free one.
    """

    def __init__(
        self, on_progress: Callable[[QueryState], None] | None = None, *, port: int | None = None
    ) -> None:
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._states: dict[str, QueryState] = {}  # by run
        self._server = None if port is None else _serve(self, port)

    @property
    def port(self) -> int | None:
        """Where it is served."""
        return None if self._server is None else self._server.server_port

    @property
    def queries(self) -> dict[str, QueryState]:
        """By name, of those that run."""
        with self._lock:
            return {state.query: state for state in self._states.values()}

    def prometheus(self) -> str:
        """The same as text in Prometheus' format."""
        rows: dict[str, list[str]] = {name: [] for name in METRICS}
        for name, state in sorted(self.queries.items()):
            query = f'query="{_escaped(name)}"'
            for at, lag in sorted(state.lag_by_partition.items()):
                labels = f'{query},topic="{at.topic}",partition="{at.index}"'
                rows["runnel_spark_lag_records"].append(f"{{{labels}}} {lag}")
            values = (
                state.input_rows_per_second,
                state.processed_rows_per_second,
                state.batch_seconds,
                state.batch_id,
            )
            for metric, value in zip(list(METRICS)[1:], values, strict=True):
                rows[metric].append(f"{{{query}}} {value}")
        lines: list[str] = []
        for metric, found in rows.items():
            lines += [f"# HELP {metric} {METRICS[metric]}", f"# TYPE {metric} gauge"]
            lines += [metric + row for row in found]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """Stop serving; the listener itself is taken away by `spark.streams.removeListener`."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        state = state_of(progress)
        with self._lock:
            self._states[str(progress.runId)] = state
        if self._on_progress is not None:
            self._on_progress(state)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        with self._lock:
            self._states.pop(str(event.runId), None)


def state_of(progress: StreamingQueryProgress) -> QueryState:
    lag: dict[TopicPartition, int] = {}
    for source in progress.sources:
        for at, count in _lag_of(source).items():
            lag[at] = lag.get(at, 0) + count
    return QueryState(
        query=progress.name or str(progress.id),
        batch_id=progress.batchId,
        lag_by_partition=lag,
        input_rows_per_second=progress.inputRowsPerSecond or 0.0,
        processed_rows_per_second=progress.processedRowsPerSecond or 0.0,
        batch_seconds=progress.batchDuration / 1000,
    )


def _lag_of(source: SourceProgress) -> dict[TopicPartition, int]:
    """Nothing for a source with other offsets, such as files."""
    try:
        latest = Offsets.of(json.loads(source.latestOffset or ""))
        end = Offsets.of(json.loads(source.endOffset or ""))
    except (ValueError, TypeError, AttributeError):
        return {}
    return {
        at: max(0, offset - end.by_partition.get(at, 0))
        for at, offset in latest.by_partition.items()
    }


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _serve(listener: LagListener, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = listener.prometheus().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass  # nobody wants a line for every scrape

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, name="runnel-spark-lag", daemon=True).start()
    return server
