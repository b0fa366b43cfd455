"""A statement that runs while a person watches: how far it is, and Ctrl-C that ends it alone."""

import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from runnel.cli.figures import count_text, seconds_text, size_text
from runnel.cli.output import progress

if TYPE_CHECKING:
    import pyarrow as pa

    from runnel.query.connection import Connection
    from runnel.query.result import Result

LOOK_S: Final = 0.2
_Value = TypeVar("_Value")


class Watched:
    """Runs statements of one connection in a thread, so that this one hears Ctrl-C."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._pool = ThreadPoolExecutor(1, "runnel-sql")
        self._started_at = time.perf_counter()

    def result(self, statement: str) -> "Result":
        """Raises QueryError, KeyboardInterrupt."""
        self._started_at = time.perf_counter()
        return self._waited(lambda: self._connection.sql(statement), _nothing)

    def batches(self, result: "Result") -> "Generator[pa.RecordBatch]":
        """Raises QueryError, KeyboardInterrupt."""
        taken = result.batches()
        with progress("reading", 100) as advance:

            def look() -> None:
                figures = result.figures
                done = figures.records + figures.counted_records
                advance(100 * done / max(result.planned_offsets, 1))

            batch = self._waited(lambda: next(taken, None), look)
        try:
            while batch is not None:
                yield batch
                batch = self._waited(lambda: next(taken, None), _nothing)
        finally:
            self._waited(taken.close, _nothing)  # type: ignore[attr-defined]  # it is a generator

    def stats(self, result: "Result", rows: int) -> str:
        figures = result.figures
        parts = [f"{rows:,} row{'' if rows == 1 else 's'} in {self.elapsed()}"]
        if figures.file_bytes:
            parts.append(f"{size_text(figures.file_bytes)} read of {figures.files} files")
        if figures.fetched_bytes:
            parts.append(f"{size_text(figures.fetched_bytes)} fetched from brokers")
        if figures.records or figures.counted_records:
            parts.append(
                f"{count_text(figures.records)} records decoded,"
                f" {count_text(figures.counted_records)} counted by their batches"
            )
        return "; ".join(parts)

    def elapsed(self) -> str:
        return seconds_text(time.perf_counter() - self._started_at)

    def close(self) -> None:
        self._pool.shutdown()

    def _waited(self, call: Callable[[], _Value], look: Callable[[], None]) -> _Value:
        future: Future[_Value] = self._pool.submit(call)
        try:
            while True:
                try:
                    return future.result(LOOK_S)
                except TimeoutError:
                    if future.done():
                        raise
                    look()
        except KeyboardInterrupt:
            self._connection.interrupt()
            future.exception()  # it ends soon, with whatever
            raise


def _nothing() -> None:
    """Nobody has to be told."""
