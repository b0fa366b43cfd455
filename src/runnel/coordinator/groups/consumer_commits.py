"""In which epoch a member of a consumer group may commit and fetch offsets (R37)."""

from runnel.coordinator.groups.consumer_member import ConsumerMember
from runnel.coordinator.groups.group import EnsurePartition
from runnel.errors import ErrorCode, RunnelError


def ensure_in_epoch(member: ConsumerMember, epoch: int) -> None:
    if epoch != member.epoch:
        word = "member epoch" if member.classic is None else "generation id"
        raise _stale(
            member,
            f"The received {word} {epoch} does not match the expected member epoch {member.epoch}.",
        )


def ensure_commits(member: ConsumerMember, epoch: int) -> EnsurePartition | None:
    """In an older epoch it may still commit what has been its own since (KIP-1251)."""
    if epoch == member.epoch:
        return None
    word = "member epoch" if member.classic is None else "generation id"
    if epoch > member.epoch:
        raise _stale(
            member, f"Received {word} {epoch} is newer than current member epoch {member.epoch}."
        )

    def ensure(topic: str, topic_id: bytes, index: int) -> None:
        given = member.assigned.get(topic_id, {}).get(index)
        if given is None:
            given = member.pending_revocation.get(topic_id, {}).get(index)
        if given is None:
            raise _stale(
                member,
                f"Partition {topic}-{index} is not assigned or pending revocation for member.",
            )
        if epoch < given:
            raise _stale(
                member,
                f"Received {word} {epoch} is older than assignment epoch {given} for partition "
                f"{topic}-{index}.",
            )

    return ensure


def _stale(member: ConsumerMember, why: str) -> RunnelError:
    code = ErrorCode.STALE_MEMBER_EPOCH
    return RunnelError(code if member.classic is None else ErrorCode.ILLEGAL_GENERATION, why)
