"""The epochs of a consumer group: when a new one begins, and what its members shall have in it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.groups.consumer_member import ConsumerMember
from runnel.coordinator.groups.consumer_reconcile import Reported, reconcile
from runnel.coordinator.groups.consumer_records import (
    Target,
    current_record,
    epoch_record,
    member_tombstones,
    partition_metadata_tombstone,
    regex_record,
    regex_tombstone,
    target_epoch_record,
    target_record,
)
from runnel.coordinator.groups.consumer_regex import Change, Found, RegexSubscriptions
from runnel.coordinator.groups.consumer_target import TopicHashes, compute_targets, topic_ids
from runnel.coordinator.records import JournalRecord

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine


class Epochs:
    """Part of the shard's `ConsumerProtocol`. It says what is to be written, and writes nothing,
    save what the look-up of regular expressions has found."""

    def __init__(self, machine: "GroupMachine") -> None:
        self._machine = machine
        self._shard = machine.shard
        self._hashes = TopicHashes(machine.topics)
        self.hash_of = self._hashes.of
        self.regexes = RegexSubscriptions(machine, self._resolved)

    def advance(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        changed: ConsumerMember,
        reported: Reported | None,
        records: list[JournalRecord],
    ) -> ConsumerMember:
        has_other_names = member.topics != changed.topics
        regex_change = self.regexes.change(group, member, changed, records)
        is_new = has_other_names or regex_change is Change.RESOLVED
        epoch = self._next_epoch(group, changed, records, is_new=is_new)
        target_epoch, target = self._target(group, changed, epoch, records)
        has_other_topics = has_other_names or regex_change.is_one
        if not has_other_topics and changed.is_reconciled_to(target_epoch):
            return changed
        moved = reconcile(
            changed,
            target_epoch,
            target,
            topic_ids(group.topics_of(changed), self._machine.topics),
            group.is_owned,
            reported,
            subscription_changed=has_other_topics,
        )
        if moved != changed:
            records.append(current_record(group.group_id, moved))
        return moved

    def _next_epoch(
        self,
        group: ConsumerGroup,
        changed: ConsumerMember,
        records: list[JournalRecord],
        *,
        is_new: bool,
    ) -> int:
        """One more if the subscriptions have changed, or the topics that they name."""
        revision = self._machine.topics.revision
        if not is_new and group.checked_revision == revision:
            return group.epoch
        members = _with(group, changed).values()
        found = self._hashes.of(group.topics_subscribed_by(members))
        if not is_new and found == group.metadata_hash:
            group.checked_revision = revision
            return group.epoch
        records.append(epoch_record(group.group_id, group.epoch + 1, found))
        if group.has_partition_metadata:
            records.append(partition_metadata_tombstone(group.group_id))
        return group.epoch + 1

    def _target(
        self,
        group: ConsumerGroup,
        changed: ConsumerMember,
        epoch: int,
        records: list[JournalRecord],
    ) -> tuple[int, Target]:
        """The target's epoch, and what it holds for this member."""
        if epoch <= group.target_epoch or not self.is_target_due(group):
            return group.target_epoch, group.target_of(changed)
        members = _with(group, changed)
        settings = self._machine.settings()
        assignor = group.preferred_assignor(members.values())
        if assignor not in settings.group_consumer_assignors:
            assignor = settings.group_consumer_assignors[0]
        targets = compute_targets(group, members, self._machine.topics, assignor)
        for member_id, target in targets.items():
            if target != group.targets.get(member_id):
                records.append(target_record(group.group_id, member_id, target))
        now_ms = self._shard.clock.wall_ms()
        records.append(target_epoch_record(group.group_id, epoch, now_ms))
        return epoch, targets[changed.member_id]

    def is_target_due(self, group: ConsumerGroup) -> bool:
        """Not more often than the interval; a clock that was set back does not hold it up."""
        since_ms = self._shard.clock.wall_ms() - group.target_timestamp_ms
        default_ms = self._machine.settings().group_consumer_assignment_interval_ms
        interval_ms = self._machine.setting(
            group.group_id, "consumer.assignment.interval.ms", default_ms
        )
        return not group.target_timestamp_ms or not 0 <= since_ms < interval_ms

    def without(
        self, group: ConsumerGroup, gone: Collection[ConsumerMember]
    ) -> list[JournalRecord]:
        """They are no longer members, and what they owned is free."""
        ids = {member.member_id for member in gone}
        left = [member for member in group.members.values() if member.member_id not in ids]
        records = [
            record
            for member in gone
            for record in member_tombstones(group.group_id, member.member_id)
        ]
        regexes = {member.regex for member in gone} - {member.regex for member in left}
        records.extend(regex_tombstone(group.group_id, each) for each in sorted(regexes) if each)
        hashed = self._hashes.of(group.topics_subscribed_by(left))
        records.append(epoch_record(group.group_id, group.epoch + 1, hashed))
        return records

    def _resolved(self, group_id: str, found: Found) -> None:
        """The expressions of a group have been looked up; if that says something new, its next
        epoch begins. Raises if it cannot be written."""
        group = self._machine.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        records = []
        has_changed = False
        for regex, resolved in found.items():
            if regex in group.regexes():
                before = group.resolved.get(regex)
                if before is None or before.topics != resolved.topics:
                    has_changed = True
                records.append(
                    regex_record(
                        group_id, regex, resolved.topics, resolved.version, resolved.timestamp_ms
                    )
                )
        after = {**group.resolved, **found}
        hashed = self._hashes.of(group.topics_subscribed_by(group.members.values(), after))
        if has_changed or hashed != group.metadata_hash:
            records.append(epoch_record(group_id, group.epoch + 1, hashed))
        self._shard.write(records)


def _with(group: ConsumerGroup, changed: ConsumerMember) -> dict[str, ConsumerMember]:
    """The members as they will be; whom a static member replaces is gone."""
    members = dict(group.members)
    before = group.static_member(changed.instance_id)
    if before is not None:
        del members[before.member_id]
    members[changed.member_id] = changed
    return members
