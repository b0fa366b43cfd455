"""A member of a consumer group (KIP-848), and its two records.

Members never change: a change makes a new one, so that what was and what will be can be compared
until the journal has it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from runnel.wire.messages.records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from runnel.wire.messages.records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)

Owned = Mapping[bytes, Mapping[int, int]]
"""By topic id: each partition and the epoch in which the member was given it."""

LEAVING: Final = -1  # the epoch of a member that leaves
LEAVING_FOR_A_WHILE: Final = -2  # of a static member that comes back within its session
JOINING: Final = 0
NOTHING: Final[Owned] = {}


class MemberState(IntEnum):
    """As the journal has it."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # the member is asked to give up partitions, and has not yet
    UNRELEASED_PARTITIONS = 2  # the member waits for partitions that others still own
    UNKNOWN = 127  # a later release wrote it


@dataclass(frozen=True, slots=True)
class ClassicPart:
    """What a member has besides if it speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # name and metadata, the preferred one first


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()  # by name
    regex: str = ""  # empty: by name alone
    server_assignor: str | None = None
    assigned: Owned = field(default_factory=dict)
    pending_revocation: Owned = field(default_factory=dict)
    classic: ClassicPart | None = None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state == MemberState.STABLE and self.epoch == target_epoch

    def moved(
        self, state: MemberState, epoch: int, assigned: Owned, pending_revocation: Owned
    ) -> "ConsumerMember":
        """The next step of its reconciliation."""
        return replace(
            self,
            state=state,
            epoch=epoch,
            previous_epoch=self.epoch,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        classic = self.classic
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata)
                    for name, metadata in classic.protocols
                ],
            ),
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicPart(
                classic.session_timeout_ms,
                tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols),
            ),
        )

    def assignment_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_written(self.assigned),
            partitions_pending_revocation=_written(self.pending_revocation),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        state = value.state
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(state) if state in _STATES else MemberState.UNKNOWN,
            assigned=_read(value.assigned_partitions, value.member_epoch),
            pending_revocation=_read(value.partitions_pending_revocation, value.member_epoch),
        )


_STATES: Final = frozenset(MemberState)


def _written(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[index] for index in sorted(epochs)],
        )
        for topic_id, epochs in sorted(owned.items())
    ]


def _read(topics: Iterable[TopicPartitions], member_epoch: int) -> Owned:
    """Before Kafka 4.3 nobody wrote when a partition was given; the member's epoch is as good."""
    found: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=False))
    return found
