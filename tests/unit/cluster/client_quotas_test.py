"""Goal: quotas in the metadata store are what they were last set to, also where answers get lost.

Method: keys and transactions as data; then a membership on a store that loses answers and applies
late, against a dictionary.
"""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.cluster import decide, values
from runnel.cluster.client_quotas import (
    Entity,
    QuotaAlteration,
    altered,
    entity_of,
    parse_entity,
    quota_key,
)
from runnel.cluster.decide import BrokerInfo
from runnel.cluster.image import Image, load
from runnel.cluster.membership import Membership
from runnel.cluster.values import ClientQuota
from runnel.errors import RunnelError
from runnel.ports import MAX_TXN_OPERATIONS, Compare, Delete
from tests.simulated.loop import SimClock, SimLoop, run
from tests.simulated.store import FakeStore, StoreFaults

APP: Entity = (("client-id", "app"),)
NAMES = st.none() | st.text(max_size=20)


@given(user=NAMES, client_id=NAMES)
def test_a_key_says_whose_it_is(user: str | None, client_id: str | None) -> None:
    parts = [("user", user), ("client-id", client_id)]
    for entity in (entity_of(parts), entity_of(parts[:1]), entity_of(parts[1:])):
        family, _, rest = quota_key(entity).partition("/")
        assert (family, parse_entity(rest)) == ("quota", entity)


def test_a_change_compares_what_it_changes_and_keeps_what_it_does_not_know() -> None:
    old = ClientQuota({"a": 1.0, "b": 2.0}, 17, {"version": 9, "new": True})
    image = Image(client_quotas={APP: old})
    (transaction,) = decide.alter_client_quotas(
        image, 99, [QuotaAlteration(APP, {"a": None, "c": 3.0})]
    )
    assert list(transaction.compares) == [
        Compare(values.CONTROLLER, "create_revision", 99),
        Compare("quota/client-id=app", "mod_revision", 17),
    ]
    (put,) = transaction.writes
    assert not isinstance(put, Delete)
    stored = values.decode_quota(put.key, put.value, 18)
    assert stored == ClientQuota({"b": 2.0, "c": 3.0}, 18, {"version": 9, "new": True})


def test_nothing_is_written_that_is_so_already_and_nothing_empty_is_kept() -> None:
    image = Image(client_quotas={APP: ClientQuota({"a": 1.0}, 17)})
    same = [QuotaAlteration(APP, {"a": 1.0}), QuotaAlteration((("user", None),), {"a": None})]
    assert decide.alter_client_quotas(image, 99, same) == []
    (gone,) = decide.alter_client_quotas(image, 99, [QuotaAlteration(APP, {"a": None})])
    assert gone.writes == [Delete("quota/client-id=app")]


def test_many_are_divided() -> None:
    many = [QuotaAlteration((("user", f"u{n}"),), {"a": 1.0}) for n in range(500)]
    transactions = decide.alter_client_quotas(Image(), 99, many)
    assert sum(len(each.writes) for each in transactions) == 500
    assert all(len(t.compares) + len(t.writes) <= MAX_TXN_OPERATIONS for t in transactions)


def stored(image: Image) -> dict[Entity, dict[str, float]]:
    return {entity: dict(quota.values) for entity, quota in image.client_quotas.items()}


@pytest.mark.parametrize("seed", range(10))
def test_what_was_answered_is_true_where_answers_get_lost(seed: int) -> None:
    chance = Random(seed)
    faults = StoreFaults(unknown=0.3, late_ms=300, delay_ms=5, compact=0.05, lose_leases=0.02)
    entities: list[Entity] = [(("user", name),) for name in ("a", "b/c", None)]

    async def test(loop: SimLoop) -> None:
        store = FakeStore(Random(seed), faults)
        membership = Membership(store, BrokerInfo(0, ()), SimClock(loop), Random(seed))
        await membership.register()
        async with asyncio.TaskGroup() as tasks:
            await membership.start(tasks)
            held: dict[Entity, dict[str, float]] = {}
            done = 0
            for _ in range(40):
                entity = chance.choice(entities)
                changes = {key: chance.choice((None, 1.0, 2.0)) for key in ("p", "c")}
                try:
                    await membership.alter_client_quotas([QuotaAlteration(entity, changes)])
                except RunnelError:  # it is not the controller just now: done or not, look later
                    await asyncio.sleep(10)
                    held = stored(load(await store.read("")))
                    continue
                done += 1
                held[entity] = altered(held.get(entity, {}), changes)
                held = {key: value for key, value in held.items() if value}
                assert stored(membership.image) == held
                assert stored(load(await store.read(""))) == held
            assert done > 20
            await membership.stop()

    run(test)
