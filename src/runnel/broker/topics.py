"""Creating, growing and deleting topics, from the request to open logs on this broker.

The membership decides and writes; this waits until the partitions that this broker holds have
caught up with the image, so that a client's next request finds what it was promised.
"""

from runnel.broker.partitions import Partitions
from runnel.cluster.image import Topic
from runnel.cluster.membership import Membership
from runnel.cluster.topics import NewPartitions, NewTopic
from runnel.errors import RunnelError
from runnel.types import TopicId


class Topics:
    """Owned by the broker, used by handlers."""

    __slots__ = ("_membership", "_partitions")

    def __init__(self, membership: Membership, partitions: Partitions) -> None:
        self._membership = membership
        self._partitions = partitions

    async def create(self, new: NewTopic, *, validate_only: bool) -> Topic:
        """Raises RunnelError with Kafka's codes."""
        (result,) = await self._membership.create_topics([new], validate_only=validate_only)
        if isinstance(result, RunnelError):
            raise result
        if not validate_only:
            await self._partitions.caught_up_with(self._membership.image.revision)
        return result

    async def add_partitions(self, new: NewPartitions, *, validate_only: bool) -> None:
        """Raises RunnelError with Kafka's codes."""
        await self._membership.add_partitions(new, validate_only=validate_only)
        if not validate_only:
            await self._partitions.caught_up_with(self._membership.image.revision)

    async def delete(self, topic_id: TopicId) -> None:
        (refusal,) = await self._membership.delete_topics([topic_id])
        if refusal is not None:
            raise refusal
        await self._partitions.caught_up_with(self._membership.image.revision)
