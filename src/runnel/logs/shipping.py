"""A buffer of records and the thread that sends them: an application is never made to wait.

What does not fit into the buffer is lost and counted, and as soon as records can be sent again one
of them says how many were lost. A batch is tried until it has been written; after an outage that
the client does not bridge itself (`DELIVERY_S`) a batch may be written twice, never out of order.
A process that forks has its own buffer and thread in the child; what the parent had stays its own.
"""

import atexit
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final

from runnel.client.cluster import ClientError, Cluster, RefusedError, addresses_of
from runnel.client.sending import Sender, size_of
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.compression import Compression

BUFFER_BYTES: Final = 8 << 20
BUFFER_BYTES_MIN: Final = 64 << 10
LINGER_S: Final = 0.2
WORTH_SENDING_BYTES: Final = 64 << 10
BATCH_BYTES: Final = 450_000
DELIVERY_S: Final = 15.0
EXIT_TIMEOUT_S: Final = 5.0
BACKOFF_S: Final = 0.2
BACKOFF_MAX_S: Final = 5.0
RECORD_BYTES: Final = 200  # that a queued record takes beside its bytes, about
CLIENT_ID: Final = "runnel-logs"

# What will be refused again however often it is sent; all else, as a missing topic, may be mended.
_OF_THE_RECORDS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
    }
)
LossTold = Callable[[int, str], Record]  # the record that says how many were lost, and why


class Shipper:
    """Takes records from any thread. `close` is called at exit, if nobody did before."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        loss_record: LossTold,
        *,
        buffer_bytes: int = BUFFER_BYTES,
        exit_timeout_s: float = EXIT_TIMEOUT_S,
    ) -> None:
        """Raises ValueError for what cannot be right; the broker is first asked by the thread."""
        if buffer_bytes < BUFFER_BYTES_MIN:
            raise ValueError(f"buffer_bytes={buffer_bytes}: at least {BUFFER_BYTES_MIN}")
        if not topic:
            raise ValueError("topic: name the topic that takes the logs")
        self._addresses = addresses_of(bootstrap)
        self.bootstrap, self.topic = bootstrap, topic
        self._loss_record = loss_record
        self._buffer_bytes = buffer_bytes
        self._exit_timeout_s = exit_timeout_s
        self._start_anew()
        _alive.add(self)
        atexit.register(_close_if_alive, weakref.ref(self))

    def _start_anew(self) -> None:
        """As nothing had happened: at first, and in the child of a fork."""
        self._changed = threading.Condition(threading.Lock())
        self._queue: deque[tuple[Record, int]] = deque()
        self._queued_bytes = 0
        self._under_way = 0  # records that the thread has taken and not yet delivered
        self._batch_bytes = 0  # of those; they stay counted until they are delivered
        self._thread: threading.Thread | None = None
        self._closing = False
        self._hurried = False  # somebody waits for the buffer to be empty
        self._told = 0
        self._sender: Sender | None = None
        self._cluster: Cluster | None = None
        self.lost = 0
        self.sent = 0
        self.last_error = ""

    def put(self, record: Record) -> None:
        """Never waits and never raises. What the sending thread itself logs is left out."""
        thread = self._thread
        if thread is not None and thread.ident == threading.get_ident():
            return
        size = size_of(record) + RECORD_BYTES
        with self._changed:
            if self._closing or self._queued_bytes + size > self._buffer_bytes:
                self.lost += 1
                return
            before = self._queued_bytes
            self._queue.append((record, size))
            self._queued_bytes = before + size
            if self._thread is None and not self._started():
                return
            if before == 0 or before < WORTH_SENDING_BYTES <= self._queued_bytes:
                self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was put has been delivered; whether it has been.

        Once it is closed nobody waits: logging flushes its handlers at exit, after that.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            try:
                while self._queue or self._under_way:
                    left_s = deadline - time.monotonic()
                    if left_s <= 0 or self._thread is None or self._closing:
                        return False
                    self._changed.wait(left_s)
            finally:
                self._hurried = False
        return True

    def close(self) -> None:
        """Flush with a limit; what is left then is lost, and said so on standard error, once."""
        with self._changed:
            if self._closing:
                return
        delivered = self.flush(self._exit_timeout_s)
        with self._changed:
            self._closing = True
            left = len(self._queue) + self._under_way
            self._queue.clear()
            self._changed.notify_all()
            if not delivered:
                self.lost += left
        if self.lost > self._told and sys.stderr is not None:
            why = f" ({self.last_error})" if self.last_error else ""
            sys.stderr.write(
                f"runnel.logs: {self.lost - self._told} log records did not reach {self.topic} at"
                f" {self.bootstrap}{why}\n"
            )
        if self._thread is not None and delivered:
            self._thread.join(1.0)

    def _started(self) -> bool:
        """Whether the thread could be started: not while the interpreter shuts down."""
        thread = threading.Thread(target=self._run, name="runnel-logs", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:
            self._thread = None
            self.lost += len(self._queue)
            self._queue.clear()
            self._queued_bytes = 0
            return False
        return True

    def _run(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                self._deliver(batch)
                self._tell_losses()
        finally:
            self._disconnect()

    def _next_batch(self) -> list[Record] | None:
        """What has gathered in a moment; None when it is time to end."""
        with self._changed:
            while not self._queue:
                if self._closing:
                    return None
                self._changed.wait()
            if not (self._hurried or self._queued_bytes >= WORTH_SENDING_BYTES or self._closing):
                self._changed.wait(LINGER_S)
            batch: list[Record] = []
            size = 0
            while self._queue and (not batch or size + self._queue[0][1] <= BATCH_BYTES):
                record, bytes_ = self._queue.popleft()
                batch.append(record)
                size += bytes_
            self._batch_bytes, self._under_way = size, len(batch)
            return batch

    def _deliver(self, batch: list[Record]) -> None:
        """Until it is written, or refused for good, or too late.

        Where records are refused it goes on in halves: one of them takes no others with it.
        """
        parts, backoff_s = [batch], BACKOFF_S
        while parts:
            part = parts.pop()
            written, failure = self._tried(part)
            rest, lost = part[written:], 0
            if _is_of_the_records(failure):
                middle = len(rest) // 2
                if middle:
                    parts += [rest[middle:], rest[:middle]]
                else:
                    lost = len(rest)
            elif isinstance(failure, ClientError | OSError):
                parts.append(rest)
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, backoff_s)
                backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
            elif failure is not None:  # a mistake of ours: the next batch may do without it
                lost = len(rest)
            with self._changed:
                self.sent += written
                self._under_way -= written
                if not self._closing:  # who closes has counted what was left
                    self.lost += lost
                    self._under_way -= lost
                elif failure is not None:
                    break
        with self._changed:
            self._queued_bytes -= self._batch_bytes
            self._under_way = 0
            self._changed.notify_all()

    def _tried(self, part: list[Record]) -> tuple[int, Exception | None]:
        """How many of the first were written, and why no more were."""
        before = 0 if self._sender is None else self._sender.sent.records
        try:
            self._send(part)
        except Exception as error:  # noqa: BLE001  # whatever it is, the thread goes on
            # All have one key, so they are in one partition and were written in order.
            written = 0 if self._sender is None else self._sender.sent.records - before
            self.last_error = str(error) or type(error).__name__
            if _is_of_the_records(error):
                self._sender = None  # what comes next has numbers that do not follow
            else:
                self._disconnect()
            return written, error
        return len(part), None

    def _send(self, batch: list[Record]) -> None:
        if self._cluster is None:
            self._cluster = Cluster(self._addresses, client_id=CLIENT_ID, timeout_s=DELIVERY_S)
        if self._sender is None:
            self._sender = Sender(self._cluster, self.topic, codec=Compression.LZ4)
        for record in batch:
            self._sender.add(record)
        self._sender.flush()

    def _tell_losses(self) -> None:
        lost = self.lost - self._told
        if not lost or self._closing or self._cluster is None:
            return
        _, failure = self._tried([self._loss_record(lost, self.last_error)])
        if failure is None:  # else the next batch that goes through tells it
            self._told += lost

    def _disconnect(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        self._cluster = self._sender = None


def _is_of_the_records(error: Exception | None) -> bool:
    return isinstance(error, RefusedError) and error.code in _OF_THE_RECORDS


_alive: "weakref.WeakSet[Shipper]" = weakref.WeakSet()


def _close_if_alive(found: "weakref.ref[Shipper]") -> None:
    shipper = found()
    if shipper is not None:
        shipper.close()


def _in_child() -> None:
    # A child of multiprocessing ends without `atexit`, and forgets its finalizers as it begins.
    ends = sys.modules.get("multiprocessing.util")
    for shipper in list(_alive):
        shipper._disconnect()  # its end of the connection; the parent's stays open
        shipper._start_anew()
        if ends is not None:
            ends.register_after_fork(shipper, _close_with_child)


def _close_with_child(shipper: Shipper) -> None:
    from multiprocessing.util import Finalize

    Finalize(None, _close_if_alive, args=(weakref.ref(shipper),), exitpriority=0)


os.register_at_fork(after_in_child=_in_child)
