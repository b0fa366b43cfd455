"""A watch over all partitions of a fetch session, kept while nothing happens in any of them.

An idle consumer asks twice a second for partitions that are as they were. To look at each of them,
to stand in the list of each and to leave it again is most of such a fetch, and none of it is in the
processor's caches any more. So the session stands in these lists once, by its watch. A fetch waits
for the watch alone; as long as no partition has moved, the next one need not even plan (ADR 52).

What a partition has to say it says by `Waiting.moved`: records, leadership, another start of the
log, a disk that failed. The watch then leaves all lists, and whoever waits for it plans anew.
"""

from runnel.broker.waiting import Wakeable
from runnel.types import Waitable


class Watch(Wakeable):
    """Owned by a session. Set anew whenever a fetch of it has planned and has to wait."""

    __slots__ = ("_committed_only", "_is_quiet", "_on", "fetches")

    def __init__(self) -> None:
        self._on: list[Waitable] = []
        self._is_quiet = False
        self._committed_only = False
        self.fetches = Waitable()  # what they wait for: that it wakes them

    def set(self, on: list[Waitable], is_quiet: bool, committed_only: bool) -> None:
        """`is_quiet`: a reply would tell nothing at all, with this isolation level."""
        if self._on:
            self.lift()
        self._on = on
        self._is_quiet = is_quiet
        self._committed_only = committed_only
        for waitable in on:
            waitable.waiters[self] = None

    def says_quiet(self, committed_only: bool) -> bool:
        """Whether all is still as it was when a plan found nothing to tell."""
        return self._is_quiet and self._committed_only == committed_only

    def lift(self) -> None:
        self._is_quiet = False
        on, self._on = self._on, []
        for waitable in on:
            if self in waitable.waiters:
                del waitable.waiters[self]

    def try_now(self) -> None:
        """Something has moved. Who still has to wait after that sets it again."""
        self.lift()
        for waiter in list(self.fetches.waiters):
            waiter.try_now()
