"""What a member of a consumer group must do in time, else it is fenced.

None of it is persisted: after a start every member gets its whole time anew.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from runnel.coordinator.timers import Timer
from runnel.errors import RunnelError
from runnel.ports import Clock

RETRY_MS = 1_000  # the journal would not take the fencing


class Duty(IntEnum):
    """An integer, because it is a key: the hash of another enum is interpreted code."""

    HEARTBEAT = 0  # within the session time-out
    REVOKE = 1  # give up partitions within the rebalance time-out
    JOIN = 2  # a classic member joins again after it was told of a rebalance
    SYNC = 3  # and asks for its assignment


REVOKE: Final = Duty.REVOKE


class Sessions:
    """Owned by the shard's `ConsumerProtocol`, which fences."""

    def __init__(
        self,
        new_timer: Callable[[Callable[[], None]], Timer],
        clock: Clock,
        fence: Callable[[str, str, Duty, int], None],
    ) -> None:
        self._new_timer = new_timer
        self._clock = clock
        self._fence = fence
        self._timers: dict[tuple[str, str], dict[Duty, Timer]] = {}

    def expect(
        self, group_id: str, member_id: str, duty: Duty, timeout_ms: int, epoch: int = -1
    ) -> None:
        """From now on; whoever fences is told the epoch in which this was asked."""
        key = group_id, member_id
        timers = self._timers.get(key)
        if timers is None:
            timers = self._timers[key] = {}
        timer = timers.get(duty)
        if timer is None or duty is REVOKE:
            if timer is not None:
                timer.cancel()
            timer = timers[duty] = self._new_timer(
                lambda: self._run_out(group_id, member_id, duty, epoch)
            )
        timer.start(self._clock.monotonic_ms() + timeout_ms)

    def is_expected(self, group_id: str, member_id: str, duty: Duty) -> bool:
        timer = self._timers.get((group_id, member_id), {}).get(duty)
        return timer is not None and timer.is_running

    def done(self, group_id: str, member_id: str, duty: Duty) -> None:
        timer = self._timers.get((group_id, member_id), {}).pop(duty, None)
        if timer is not None:
            timer.cancel()

    def forget(self, group_id: str, member_id: str) -> None:
        for timer in self._timers.pop((group_id, member_id), {}).values():
            timer.cancel()

    def _run_out(self, group_id: str, member_id: str, duty: Duty, epoch: int) -> None:
        try:
            self._fence(group_id, member_id, duty, epoch)
        except RunnelError:
            self.expect(group_id, member_id, duty, RETRY_MS, epoch)
