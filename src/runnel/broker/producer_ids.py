"""Producer ids, given out one by one from blocks that the metadata store reserves for this broker.

A block that a crash leaves half used is lost; ids are plenty. While one block is being fetched
every caller waits for that one. Coordinators cannot wait: they take what is there, and find more
the next time if there was nothing.
"""

import asyncio
import contextlib

from runnel.cluster.membership import Membership
from runnel.errors import ErrorCode, RunnelError


class ProducerIds:
    """Owned by the broker, used by InitProducerId and by transactions whose epochs are used up."""

    __slots__ = ("_fetch", "_fetching", "_free", "_membership")

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._free = range(0)
        self._fetching = asyncio.Lock()
        self._fetch: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        return not self._free

    async def next(self) -> int:
        """Raises RunnelError if the store gives no block."""
        while not self._free:
            await self.ensure()
        return self.take()

    def take(self) -> int:
        """At once. Raises COORDINATOR_LOAD_IN_PROGRESS, as Kafka does, while there is none."""
        free = self._free
        if free:
            self._free = free[1:]
            return free[0]
        if self._fetch is None or self._fetch.done():
            self._fetch = asyncio.get_running_loop().create_task(self._fetch_if_possible())
        raise RunnelError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id at hand")

    async def _fetch_if_possible(self) -> None:
        with contextlib.suppress(RunnelError):  # whoever needs one asks again
            await self.ensure()

    async def ensure(self) -> None:
        """Have one at hand. Raises RunnelError if the store gives no block."""
        async with self._fetching:
            if not self._free:
                self._free = await self._membership.allocate_producer_ids()
