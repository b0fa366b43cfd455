"""Members of consumer groups as clients are: they own what they are told, and give up likewise."""

from collections.abc import Iterable
from typing import Any

from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.support.shards import GroupStage

CALLER = Caller("client", "/127.0.0.1", 1)


def group_of(stage: GroupStage, group_id: str = "g") -> ConsumerGroup:
    group = stage.machine.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def beat(stage: GroupStage, **fields: Any) -> ConsumerGroupHeartbeatResponse:  # noqa: ANN401
    request = ConsumerGroupHeartbeatRequest(**{"group_id": "g", **fields})
    return stage.machine.consumer.heartbeat(CALLER, request)


class Member:
    """It reports what it owns with every heartbeat, unless it is asked to be slow."""

    def __init__(
        self,
        stage: GroupStage,
        member_id: str,
        topics: Iterable[str] = ("t",),
        **fields: Any,  # noqa: ANN401
    ) -> None:
        self.stage = stage
        self.member_id = member_id
        self.topics = list(topics)
        self.fields = fields
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self.told: set[tuple[bytes, int]] = set()

    def join(self) -> ConsumerGroupHeartbeatResponse:
        self.owned, self.told = set(), set()
        return self._take(
            beat(
                self.stage,
                member_id=self.member_id,
                member_epoch=0,
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=self.topics,
                topic_partitions=[],
                **self.fields,
            )
        )

    def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:  # noqa: ANN401
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            by_topic.setdefault(topic_id, []).append(index)
        reported = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic.items()
        ]
        known = {"member_id": self.member_id, "member_epoch": self.epoch}
        if "instance_id" in self.fields:
            known["instance_id"] = self.fields["instance_id"]
        return self._take(beat(self.stage, **{**known, "topic_partitions": reported, **fields}))

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        assert response.member_id == self.member_id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.told = {
                (topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            }
        return response

    def follow(self) -> None:
        """Give up and take over, as it was told last."""
        self.owned = set(self.told)

    def leave(self, epoch: int = -1) -> None:
        fields = {k: v for k, v in self.fields.items() if k == "instance_id"}
        beat(self.stage, member_id=self.member_id, member_epoch=epoch, **fields)
        if epoch == -1:
            self.owned, self.told = set(), set()


def settle(stage: GroupStage, members: Iterable[Member], rounds: int = 8) -> None:
    """All of them send heartbeats and do as they are told, until nothing more changes."""
    members = list(members)
    for _ in range(rounds):
        stage.advance_ms(2_000)
        for member in members:
            member.beat()
            member.follow()
