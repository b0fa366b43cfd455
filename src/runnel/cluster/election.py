"""How one partition's record changes when a broker restarts, and who leads it next. Pure.

Safety rests on these rules alone, never on time: a leader comes from the ISR, then from the ELR,
each entry only in the very broker epoch that it was written with; only where both are empty the
last known leader is taken, marked as recovering. The ISR is emptied into the ELR, except of a
replica that may have lost data. The ELR is empty while the ISR has its minimum: from then on the
high watermark can pass the ELR's members by (R17, R18).
"""

from collections.abc import Mapping

from runnel.cluster.values import NO_LEADER, Member, Partition


def restarted(partition: Partition, member: Member, *, lossless_since: int) -> Partition:
    """The record once `member` is known to live in a new epoch; an entry of that epoch stays."""
    mine = [m for m in (*partition.isr, *partition.elr) if m.id == member.id and m != member]
    if not mine:
        return partition
    isr = tuple(m for m in partition.isr if m.id != member.id)
    elr = tuple(m for m in partition.elr if m.id != member.id)
    if mine[0].epoch >= lossless_since:
        elr = (*elr, member)
    changed = partition._replace(isr=isr, elr=_needed_elr(partition, isr, elr))
    if partition.leader == member.id:
        changed = changed._replace(leader=NO_LEADER, last_known_leader=member.id)
    return changed


def elect(partition: Partition, electable: Mapping[int, int]) -> Partition:
    """The record with the leader it should have. `electable`: broker id -> its current epoch."""
    if _may_lead(partition.leader, partition.isr, electable):
        return partition
    for broker_id in partition.replicas:
        if _may_lead(broker_id, partition.isr, electable):
            return _led(partition, broker_id, partition.isr, partition.elr)
    for broker_id in partition.replicas:
        if _may_lead(broker_id, partition.elr, electable):
            chosen = Member(broker_id, electable[broker_id])
            rest = tuple(m for m in (*partition.elr, *partition.isr) if m.id != broker_id)
            return _led(partition, broker_id, (chosen,), rest)
    last = partition.last_known_leader
    if not partition.isr and not partition.elr and last in electable:
        recovering = partition._replace(recovering=True)
        return _led(recovering, last, (Member(last, electable[last]),), ())
    if partition.leader == NO_LEADER:
        return partition
    return partition._replace(leader=NO_LEADER, last_known_leader=partition.leader)


def revised(old: Partition, new: Partition) -> Partition:
    """`new` with the epochs that its difference from `old` asks for."""
    if new == old:
        return old
    # A restarted leader is a new one though it has the same id: everyone must notice.
    moved = new.leader != old.leader or (
        _epoch_of(new.leader, new.isr) != _epoch_of(old.leader, old.isr)
    )
    return new._replace(
        leader_epoch=old.leader_epoch + (1 if moved else 0),
        partition_epoch=old.partition_epoch + 1,
    )


def _epoch_of(broker_id: int, members: tuple[Member, ...]) -> int:
    return next((m.epoch for m in members if m.id == broker_id), 0)


def _may_lead(broker_id: int, members: tuple[Member, ...], electable: Mapping[int, int]) -> bool:
    return broker_id in electable and Member(broker_id, electable[broker_id]) in members


def _led(
    partition: Partition, leader: int, isr: tuple[Member, ...], elr: tuple[Member, ...]
) -> Partition:
    needed = _needed_elr(partition, isr, elr)
    return partition._replace(leader=leader, last_known_leader=NO_LEADER, isr=isr, elr=needed)


def _needed_elr(
    partition: Partition, isr: tuple[Member, ...], elr: tuple[Member, ...]
) -> tuple[Member, ...]:
    return () if len(isr) >= partition.effective_min_isr else elr
