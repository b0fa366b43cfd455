"""A member by the classic protocol; its leader deals the partitions out in turn."""

from typing import Final

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from runnel.wire.messages.consumer_protocol_assignment import (
    TopicPartition as AssignedTopic,
)
from runnel.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from runnel.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulated.calls import COME_AGAIN, CodeError, ensure_ok
from tests.simulated.member import Member

PROTOCOL: Final = "range"
VERSION: Final = (1).to_bytes(2, "big")
WHO_IS_NOBODY: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    }
)


class ClassicMember(Member):
    async def _enter(self) -> None:
        """Join and sync until there is an assignment. Raises what it cannot mend."""
        while True:
            began = self.coordinated.tick()
            try:
                joined = await self._join()
                assignment = await self._sync(joined)
            except CodeError as error:
                if error.code in WHO_IS_NOBODY:
                    self.forget()
                if error.code is ErrorCode.MEMBER_ID_REQUIRED or (
                    error.code is ErrorCode.REBALANCE_IN_PROGRESS and not self.stopping
                ):
                    continue
                raise
            self.epoch = joined.generation_id
            self.coordinated.grant(
                self.group, self.identity, self.epoch, assignment, joined=True, began=began
            )
            self.owned.clear()  # eager: everything was given up when it joined
            await self.own(assignment)
            return

    async def _join(self) -> JoinGroupResponse:
        subscription = ConsumerProtocolSubscription(topics=sorted(self.topics))
        metadata = VERSION + codec_for(ConsumerProtocolSubscription, 1).write(subscription)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.pace.session_ms,
            rebalance_timeout_ms=self.pace.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata)],
        )
        patience_s = 2 * self.pace.rebalance_ms / 1000 + self.pace.session_ms / 1000
        response: JoinGroupResponse = await self.caller.call(request, 9, timeout_s=patience_s)
        if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = response.member_id
        ensure_ok(response.error_code)
        return response

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        assignments = []
        if joined.leader == self.member_id and not joined.skip_assignment:
            assignments = self._deal([member.member_id for member in joined.members])
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        patience_s = 2 * self.pace.rebalance_ms / 1000
        response = await self.caller.call(request, 5, timeout_s=patience_s)
        ensure_ok(response.error_code)
        if not response.assignment:
            return []
        found, _ = codec_for(ConsumerProtocolAssignment, 1).read(response.assignment, len(VERSION))
        return [
            TopicPartition(topic.topic, index)
            for topic in found.assigned_partitions
            for index in topic.partitions
        ]

    def _deal(self, member_ids: list[str]) -> list[SyncGroupRequestAssignment]:
        every = [
            (topic, index) for topic in sorted(self.topics) for index in range(self.topics[topic])
        ]
        self.chance.shuffle(member_ids)
        dealt = []
        for number, member_id in enumerate(member_ids):
            topics: dict[str, AssignedTopic] = {}
            for topic, index in every[number :: len(member_ids)]:
                topics.setdefault(topic, AssignedTopic(topic=topic)).partitions.append(index)
            assignment = ConsumerProtocolAssignment(assigned_partitions=list(topics.values()))
            data = VERSION + codec_for(ConsumerProtocolAssignment, 1).write(assignment)
            dealt.append(SyncGroupRequestAssignment(member_id=member_id, assignment=data))
        return dealt

    async def _beat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        response = await self.caller.call(request, 4)
        code = ErrorCode(response.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            await self._enter()
        elif code in WHO_IS_NOBODY:
            self.counts["members fenced"] += 1
            self.forget()
            await self._enter()
        elif code not in COME_AGAIN:
            ensure_ok(code)

    async def _leave(self) -> None:
        who = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.group, members=[who])
        ensure_ok((await self.caller.call(request, 5)).error_code)
