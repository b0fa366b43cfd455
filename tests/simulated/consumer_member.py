"""A member by the consumer protocol (KIP-848): one heartbeat says what it owns, and what it may."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.simulated.calls import CodeError, committed_offsets, ensure_ok
from tests.simulated.member import Member

LEAVING: Final = -1
LEAVING_FOR_NOW: Final = -2  # a static member that will come back
FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNRELEASED_INSTANCE_ID,
    }
)


class ConsumerMember(Member):
    async def _enter(self) -> None:
        is_new = not self.member_id
        if is_new:
            self.member_id = str(UUID(int=self.chance.getrandbits(128)))
        self.epoch = 0
        self.owned.clear()
        await self._exchange(joined=is_new and self.instance_id is None)

    async def _beat(self) -> None:
        try:
            await self._exchange(joined=False)
        except CodeError as error:
            if error.code not in FENCED:
                raise
            self.counts["members fenced"] += 1
            self.forget()
            await self._enter()

    async def _exchange(self, *, joined: bool) -> None:
        """All fields each time, as after a lost answer; what must go is gone with the next one."""
        began = self.coordinated.tick()
        response = await self._heartbeat(self.epoch)
        ensure_ok(response.error_code)
        self.epoch = response.member_epoch
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        partitions = list(self.owned)
        if response.assignment is not None:
            partitions = [
                TopicPartition(names[topic.topic_id], index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            ]
        self.coordinated.grant(
            self.group, self.identity, self.epoch, partitions, joined=joined, began=began
        )
        await self.own(partitions)

    async def _heartbeat(self, epoch: int) -> ConsumerGroupHeartbeatResponse:
        topics: dict[str, ConsumerGroupHeartbeatRequestTopicPartitions] = {}
        for topic, index in sorted(self.owned):
            owned = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self.topic_ids[topic])
            topics.setdefault(topic, owned).partitions.append(index)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.pace.rebalance_ms,
            subscribed_topic_names=sorted(self.topics),
            topic_partitions=list(topics.values()),
        )
        response: ConsumerGroupHeartbeatResponse = await self.caller.call(request, 1)
        return response

    async def _committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        return await committed_offsets(
            self.caller,
            self.group,
            partitions,
            member_id=self.member_id,
            member_epoch=self.epoch,
        )

    async def _leave(self) -> None:
        for_now = self.instance_id is not None and self.chance.random() < 0.5
        response = await self._heartbeat(LEAVING_FOR_NOW if for_now else LEAVING)
        ensure_ok(response.error_code)
