"""Restarts and elections of one partition, over every small case: R17, R18 and their invariants."""

from itertools import chain, combinations, product

import pytest

from runnel.cluster.election import elect, restarted, revised
from runnel.cluster.values import NO_LEADER, Member, Partition

OLD, NEW = 10, 20
BROKERS = (1, 2, 3)


def subsets(items: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(items, n) for n in range(len(items) + 1)))


def partition(
    leader: int, isr: tuple[int, ...], elr: tuple[int, ...], min_isr: int, last: int = NO_LEADER
) -> Partition:
    isr_members = tuple(Member(broker, OLD) for broker in isr)
    elr_members = tuple(Member(broker, OLD) for broker in elr)
    return Partition(
        bytes(16), 0, leader, 5, isr_members, elr_members, BROKERS, (), (), min_isr, last, False, 7
    )


def legal_partitions() -> list[Partition]:
    """Every record that the rules allow: the leader in the ISR, the ELR only below the minimum."""
    found = []
    for isr, elr, min_isr in product(subsets(BROKERS), subsets(BROKERS), (1, 2, 3)):
        if set(isr) & set(elr) or (elr and len(isr) >= min_isr):
            continue
        leaders = [*isr, NO_LEADER]
        lasts = [NO_LEADER] if isr or elr else [NO_LEADER, *BROKERS]
        found += [partition(le, isr, elr, min_isr, la) for le in leaders for la in lasts]
    return found


def test_every_restart_keeps_the_rules() -> None:
    cases = 0
    for old, lossy, others in product(legal_partitions(), (False, True), subsets((2, 3))):
        member = Member(1, NEW)
        after = restarted(old, member, lossless_since=NEW if lossy else 0)
        electable = {1: NEW} | dict.fromkeys(others, OLD)
        new = revised(old, elect(after, electable))
        cases += 1
        held = {m.id for m in (*old.isr, *old.elr)}
        kept = {m.id for m in (*new.isr, *new.elr)}
        assert Member(1, OLD) not in (*new.isr, *new.elr), "the old life is out of every set"
        if new.leader != NO_LEADER:
            assert Member(new.leader, electable[new.leader]) in new.isr, "a leader is in its ISR"
        if not new.recovering:
            assert kept <= held, "nobody comes in who did not hold the data"
            assert not (lossy and 1 in kept), "who lost data is no candidate"
        else:
            assert not after.isr and not after.elr, "the last known leader is the last resort"
            assert new.leader == after.last_known_leader
        if len(new.isr) < new.effective_min_isr:
            assert kept >= held - {1}, "the ISR is emptied only into the ELR"
        else:
            assert not new.elr
        if new != old:
            assert new.partition_epoch == old.partition_epoch + 1
        same_leader = new.leader == old.leader and old.leader != 1
        assert (new.leader_epoch == old.leader_epoch) == (
            same_leader or old.leader == new.leader == NO_LEADER
        )
    assert cases > 500


def test_one_broker_alone_takes_its_partition_back() -> None:
    old = Partition(bytes(16), 0, 1, 5, (Member(1, OLD),), (), (1,), (), (), 2, -1, False, 7)
    clean = revised(old, elect(restarted(old, Member(1, NEW), lossless_since=OLD), {1: NEW}))
    assert (clean.leader, clean.leader_epoch, clean.isr) == (1, 6, (Member(1, NEW),))
    assert not clean.recovering
    lossy = revised(old, elect(restarted(old, Member(1, NEW), lossless_since=OLD + 1), {1: NEW}))
    assert lossy == clean._replace(recovering=True)


def test_an_entry_of_another_epoch_is_never_elected() -> None:
    old = partition(NO_LEADER, (2,), (3,), 2)
    assert elect(old, {2: NEW, 3: NEW}).leader == NO_LEADER, "both have restarted unnoticed"
    assert elect(old, {3: OLD}).leader == 3
    assert elect(old, {3: OLD}).elr == (Member(2, OLD),), "the ISR that is away keeps its claim"


@pytest.mark.parametrize("leader", BROKERS)
def test_a_leader_that_can_lead_stays(leader: int) -> None:
    old = partition(leader, BROKERS, (), 2)
    assert elect(old, dict.fromkeys(BROKERS, OLD)) is old
    assert revised(old, old) is old
