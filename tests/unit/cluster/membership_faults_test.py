"""Membership against a model, on a store that loses answers, applies late, forgets and fences.

Goal: what was answered is true. A created topic exists, a deleted one does not, settings are what
they were last set to, no producer id is given twice, leader epochs never go back, and a new life
of the broker leads everything. Method: seeded operations with crashes in between; what was under
way at a crash may have happened or not, so the model looks and adopts it.
"""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from functools import partial

import pytest

from runnel.cluster.decide import BrokerInfo
from runnel.cluster.image import Image, Topic, load
from runnel.cluster.membership import Membership
from runnel.cluster.topics import NewTopic
from runnel.cluster.values import NO_LEADER, ConfigOwner
from runnel.errors import RunnelError
from tests.simulated.loop import SimClock, SimLoop, run
from tests.simulated.store import FakeStore, StoreFaults

GROUP = ConfigOwner("group", "gr\u00fcn/eins")
FAULTS = StoreFaults(unknown=0.2, late_ms=300, delay_ms=5, compact=0.05, lose_leases=0.03)
KINDS = ("unknown, applied", "unknown, lost", "unknown, late", "compacted", "leases lost", "killed")


class Model:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names: dict[str, bytes] = {}
        self.doubtful: set[str] = set()
        self.blocks: list[range] = []
        self.min_isr: dict[bytes, str] = {}  # by topic id
        self.rate = ""
        self.rate_in_doubt = False
        self.epochs: dict[tuple[bytes, int], int] = {}
        self.killed = 0

    def check(self, old: Image, new: Image) -> None:
        assert new.revision > old.revision
        for topic in new.topics.values():
            for partition in topic.partitions:
                key = (topic.id, partition.index)
                assert partition.leader_epoch >= self.epochs.get(key, 0), "an epoch went back"
                self.epochs[key] = partition.leader_epoch
                members = {m.id for m in (*partition.isr, *partition.elr)}
                assert partition.leader == NO_LEADER or partition.leader in partition.isr_ids
                assert members <= set(partition.replicas)

    async def operate(self, membership: Membership) -> None:
        for _ in range(self.chance.randint(5, 15)):
            name = f"t{self.chance.randrange(8)}"
            match self.chance.choice(("create", "create", "delete", "block", "topic", "group")):
                case "create" if name not in self.doubtful:
                    await self.create(membership, name)
                case "delete" if name in self.names and name not in self.doubtful:
                    await self.delete(membership, name)
                case "topic" if name in self.names and name not in self.doubtful:
                    await self.configure(membership, name)
                case "group":
                    await self.configure_group(membership)
                case _:
                    self.blocks.append(await membership.allocate_producer_ids())

    async def create(self, membership: Membership, name: str) -> None:
        self.doubtful.add(name)
        count = self.chance.choice((1, 2, 3, 150))
        (result,) = await membership.create_topics([NewTopic(name, count)])
        if isinstance(result, Topic):
            assert name not in self.names, "created twice"
            assert membership.image.topics[name].id == result.id
            assert len(result.partitions) == count
            self.names[name] = result.id
        if isinstance(result, Topic) or name in self.names:
            self.doubtful.discard(name)

    async def delete(self, membership: Membership, name: str) -> None:
        self.doubtful.add(name)
        (error,) = await membership.delete_topics([self.names[name]])
        if error is None:
            assert name not in membership.image.topics
            del self.names[name]
            self.doubtful.discard(name)

    async def configure(self, membership: Membership, name: str) -> None:
        self.doubtful.add(name)
        self.min_isr[self.names[name]] = wanted = str(self.chance.randint(1, 5))
        owner = ConfigOwner("topic", name)
        with suppress(RunnelError):  # another must be asked: in doubt until `settle`
            await membership.alter_configs(owner, lambda _: {"min.insync.replicas": wanted})
            self.assert_configured(membership.image.topics[name], wanted)
            self.doubtful.discard(name)

    def assert_configured(self, topic: Topic, wanted: str) -> None:
        assert topic.configs == {"min.insync.replicas": wanted}
        assert {partition.min_isr for partition in topic.partitions} == {int(wanted)}

    async def configure_group(self, membership: Membership) -> None:
        self.rate_in_doubt = True
        wanted = str(self.chance.randrange(100)) if self.chance.random() < 0.7 else ""
        with suppress(RunnelError):
            await membership.alter_configs(GROUP, lambda _: {"rate": wanted} if wanted else {})
            self.rate, self.rate_in_doubt = wanted, False

    async def settle(self, store: FakeStore) -> None:
        image = load(await store.read(""))
        topics = image.topics
        rate = image.configs_of(GROUP).get("rate", "")
        self.rate = rate if self.rate_in_doubt else self.rate
        self.rate_in_doubt = False
        assert rate == self.rate
        for name in topics.keys() - self.doubtful:
            stored = topics[name].configs.get("min.insync.replicas")
            assert stored == (self.min_isr.get(topics[name].id) or None)
        for name in self.doubtful:
            if name in topics:
                self.min_isr[topics[name].id] = topics[name].configs.get("min.insync.replicas", "")
            self.names.pop(name, None)
            if name in topics:
                self.names[name] = topics[name].id
        self.doubtful.clear()
        assert {name: topic.id for name, topic in topics.items()} == self.names

    async def live(self, store: FakeStore, loop: SimLoop, limit_s: float | None) -> Membership:
        """One life of the broker, killed after `limit_s`."""
        info = BrokerInfo(0, (), boot_id="same")
        seed = random.Random(self.chance.randrange(1 << 30))
        membership = Membership(store, info, SimClock(loop), seed)
        membership.on_image.append(self.check)
        try:
            async with asyncio.timeout(limit_s), asyncio.TaskGroup() as tasks:
                await membership.register()
                await membership.start(tasks)
                await self.operate(membership)
                await membership.stop()
        except TimeoutError:
            self.killed += 1
            await asyncio.sleep(10)  # until its lease runs out and its late writes have landed
        return membership


async def four_lives_and_one(loop: SimLoop, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    store, model = FakeStore(chance, FAULTS), Model(chance)
    for _ in range(4):
        await model.live(store, loop, chance.uniform(0.05, 2))
        await asyncio.sleep(1)
        await model.settle(store)
    store.faults = StoreFaults()
    last = await model.live(store, loop, None)
    assert not last.image.unnamed, "an interrupted change was not swept"
    for topic in last.image.topics.values():
        assert all(p.is_led_by(0, last.broker_epoch) for p in topic.partitions)
        assert not any(p.recovering for p in topic.partitions), "no restart was lossy"
        min_isr = int(topic.configs.get("min.insync.replicas", 1))
        assert all(p.min_isr == min_isr for p in topic.partitions), "half of a change was left"
    ids = [number for block in model.blocks for number in block]
    assert len(ids) == len(set(ids)), "a producer id was given twice"
    return store.happened + Counter(killed=model.killed)


@pytest.mark.parametrize("group", range(3))
def test_what_was_answered_is_true(group: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(group * 5, group * 5 + 5):
        try:
            happened += run(partial(four_lives_and_one, seed=seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert all(happened[kind] for kind in KINDS), happened
