"""Several ranges decoded at once, given in a fixed order: one batch of each in turn.

The decoder lets go of the interpreter's lock, so threads use the cores. What is ahead of the reader
is limited: each range waits with `AHEAD` batches decoded. A query that has enough, as `limit` does,
closes the generator, and the threads end.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

AHEAD: Final = 2
WAIT_S: Final = 0.1
JOIN_S: Final = 5.0  # a thread that waits for a broker is left to end by itself

_Piece = TypeVar("_Piece")


class _Feed(Generic[_Piece]):
    """One range in a thread of its own."""

    def __init__(
        self,
        read: "Callable[[_Piece], Iterator[pa.RecordBatch]]",
        piece: _Piece,
        stop: threading.Event,
    ) -> None:
        self._read, self._piece, self._stop = read, piece, stop
        self._queue: Queue[pa.RecordBatch | BaseException | None] = Queue(AHEAD)
        self.thread = threading.Thread(target=self._run, name="runnel-sql", daemon=True)
        self.thread.start()

    def next(self) -> "pa.RecordBatch | None":
        """None at the end. Raises what reading raised."""
        while True:
            try:
                found = self._queue.get(timeout=WAIT_S)
            except Empty:
                if not self.thread.is_alive() and self._queue.empty():
                    return None
                continue
            if isinstance(found, BaseException):
                raise found
            return found

    def _run(self) -> None:
        try:
            for batch in self._read(self._piece):
                if not self._put(batch):
                    return
            self._put(None)
        except Exception as error:  # noqa: BLE001  # it is raised where the batch was waited for
            self._put(error)

    def _put(self, item: "pa.RecordBatch | BaseException | None") -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=WAIT_S)
            except Full:
                continue
            return True
        return False


def fed(
    read: "Callable[[_Piece], Iterator[pa.RecordBatch]]", pieces: Sequence[_Piece], at_once: int
) -> "Generator[pa.RecordBatch]":
    """All batches of all pieces. Raises what reading raises."""
    if len(pieces) == 1 or at_once == 1:
        for piece in pieces:
            yield from read(piece)
        return
    stop = threading.Event()
    waiting = deque(pieces)
    feeds: deque[_Feed[_Piece]] = deque()
    try:
        while waiting or feeds:
            while waiting and len(feeds) < at_once:
                feeds.append(_Feed(read, waiting.popleft(), stop))
            feed = feeds.popleft()
            batch = feed.next()
            if batch is not None:
                feeds.append(feed)
                yield batch
    finally:
        stop.set()
        for feed in feeds:
            feed.thread.join(JOIN_S)
