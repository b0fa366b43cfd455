"""Producer ids, given out one by one from blocks that the metadata store reserves for this broker.

A block that a crash leaves half used is lost; ids are plenty. While one block is being fetched
every caller waits for that one.
"""

import asyncio

from runnel.cluster.membership import Membership


class ProducerIds:
    """Owned by the broker, used by InitProducerId."""

    __slots__ = ("_block", "_fetching", "_membership")

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._block = iter(range(0))
        self._fetching = asyncio.Lock()

    async def next(self) -> int:
        """Raises RunnelError if the store gives no block."""
        async with self._fetching:
            for producer_id in self._block:
                return producer_id
            self._block = iter(await self._membership.allocate_producer_ids())
            return next(self._block)
