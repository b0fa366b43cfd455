"""What is due when: one heap for all that coordinators wait for.

A session of a member is put off by every heartbeat and almost never runs out. So putting off only
notes the later time; the heap learns of it when the earlier one comes up. A thousand members then
cost one entry each per session time-out, not one per heartbeat. What was cancelled leaves the heap
when it has doubled: clients may choose time-outs of weeks.
"""

import heapq
from collections.abc import Callable
from typing import Final

NEVER_MS: Final = 2**62
SWEPT_AT_LEAST: Final = 1000  # entries
AT_ONCE_MAX: Final = 64  # a thousand sessions that run out together must not hold up the loop


class Timer:
    """One thing to be done once. Cancelled or done, it may be started again."""

    __slots__ = ("_in_heap_for_ms", "_timers", "due_ms", "work")

    def __init__(self, timers: "Timers", work: Callable[[], None]) -> None:
        self._timers = timers
        self._in_heap_for_ms = NEVER_MS
        self.work = work
        self.due_ms = NEVER_MS

    @property
    def is_running(self) -> bool:
        return self.due_ms != NEVER_MS

    def start(self, due_ms: int) -> None:
        """On the monotonic clock. If it runs already, the new time counts."""
        self.due_ms = due_ms
        if due_ms < self._in_heap_for_ms:
            self._timers.push(self, due_ms)
            self._in_heap_for_ms = due_ms

    def cancel(self) -> None:
        self.due_ms = NEVER_MS

    def swept(self, at_ms: int) -> bool:
        """Its entry is looked at before its time: whether it is of no use, and so is forgotten."""
        if at_ms != self._in_heap_for_ms:
            return True
        if self.is_running:
            return False
        self._in_heap_for_ms = NEVER_MS
        return True

    def came_up(self, at_ms: int, now_ms: int) -> bool:
        """Its entry left the heap. Whether it is due; if it was put off, it goes in again."""
        if at_ms != self._in_heap_for_ms:
            return False  # an earlier entry has overtaken this one
        self._in_heap_for_ms = NEVER_MS
        if self.due_ms > now_ms:
            if self.due_ms != NEVER_MS:
                self.start(self.due_ms)
            return False
        self.due_ms = NEVER_MS
        return True


class Timers:
    """Owned by the broker's coordinators. `on_earlier` is told when the next time moves forward."""

    __slots__ = ("_count", "_heap", "_sweep_at", "on_earlier")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._sweep_at = SWEPT_AT_LEAST
        self.on_earlier: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """Entries, those among them that are of no use any more."""
        return len(self._heap)

    def push(self, timer: Timer, due_ms: int) -> None:
        """Called by timers alone."""
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        self._count += 1  # so that equal times keep their order and timers are never compared
        heapq.heappush(self._heap, (due_ms, self._count, timer))
        if self._heap[0][2] is timer:
            self.on_earlier()

    def _sweep(self) -> None:
        self._heap[:] = [entry for entry in self._heap if not entry[2].swept(entry[0])]
        heapq.heapify(self._heap)
        self._sweep_at = max(2 * len(self._heap), SWEPT_AT_LEAST)

    def next_ms(self) -> int:
        """When to call `run_due` next; it may find nothing due then."""
        return self._heap[0][0] if self._heap else NEVER_MS

    def run_due(self, now_ms: int) -> None:
        """What is started meanwhile waits for the next call, so that long work can give way; and
        so does what is too much for one."""
        last, started, done = self._count, [], 0
        try:
            while done < AT_ONCE_MAX and self._heap and self._heap[0][0] <= now_ms:
                entry = heapq.heappop(self._heap)
                at_ms, number, timer = entry
                if number > last:
                    started.append(entry)
                elif timer.came_up(at_ms, now_ms):
                    done += 1
                    timer.work()
        finally:
            for entry in started:
                heapq.heappush(self._heap, entry)
