"""Membership on virtual time, on a store that loses answers, history and leases."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runnel.cluster.decide import BrokerInfo
from runnel.cluster.image import Topic, load
from runnel.cluster.membership import Membership
from runnel.cluster.sqlite import SqliteStore
from runnel.cluster.topics import NewTopic, TopicDefaults
from runnel.cluster.values import Member
from runnel.config.listeners import Listener
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock, Compare, Delete, MetadataStore, Outcome, Put, TxnResult
from tests.simulated.loop import SimClock, SimLoop, run
from tests.simulated.store import FakeStore

LISTENERS = (Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)


def broker(
    store: MetadataStore, clock: Clock, seed: int = 1, **info: str | int | bool
) -> Membership:
    details = BrokerInfo(0, LISTENERS)._replace(**info)  # type: ignore[arg-type]  # by name
    return Membership(store, details, clock, random.Random(seed), defaults=TopicDefaults(3, 1, 1))


async def one_life(membership: Membership, work: Callable[[], Awaitable[None]]) -> None:
    """Register, start, do the work, leave."""
    async with asyncio.TaskGroup() as tasks:
        await membership.register()
        await membership.start(tasks)
        await work()
        await membership.stop()


async def nothing() -> None: ...


def created(result: Topic | RunnelError) -> Topic:
    assert isinstance(result, Topic), result
    return result


def test_the_first_start_of_all() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        membership = broker(store, SimClock(loop), boot_id="b")
        steps: list[tuple[int, int]] = []
        membership.on_image.append(lambda old, new: steps.append((old.revision, new.revision)))

        async def work() -> None:
            image = membership.image
            assert len(image.cluster_id) == 22
            assert image.brokers[0].ready
            assert image.brokers[0].listeners == LISTENERS
            assert image.brokers[0].epoch == membership.broker_epoch
            assert membership.is_controller

        await one_life(membership, work)
        assert [old for old, _ in steps[1:]] == [new for _, new in steps[:-1]], "no step is missed"
        left = load(await store.read(""))
        assert not left.brokers[0].live and left.controller is None

    run(main)


def test_topics_live_in_sqlite_over_restarts(tmp_path: Path) -> None:
    class RealClock:
        def wall_ms(self) -> int:
            return self.monotonic_ms()

        def monotonic_ms(self) -> int:
            return int(asyncio.get_running_loop().time() * 1000)

    async def main() -> None:
        for life in range(4):
            store = await SqliteStore.open(tmp_path, RealClock())
            membership = broker(store, RealClock(), seed=life, boot_id="same")

            async def work(life: int = life, membership: Membership = membership) -> None:
                if life == 0:
                    (result,) = await membership.create_topics([NewTopic("big", 300)])
                    assert len(created(result).partitions) == 300
                for partition in membership.image.topics["big"].partitions:
                    assert partition.is_led_by(0, membership.broker_epoch)
                    assert partition.leader_epoch == partition.partition_epoch == life
                    assert partition.isr == (Member(0, membership.broker_epoch),)
                    assert partition.elr == () and not partition.recovering

            await one_life(membership, work)
            await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("second", "recovering"),
    [
        ({"boot_id": "first"}, False),
        ({"boot_id": "second"}, True),
        ({"boot_id": "first", "write_failed": True}, True),
        ({"boot_id": "second", "clean_epoch": "mine"}, False),
        ({"boot_id": "second", "clean_epoch": 1}, True),
        ({"boot_id": ""}, True),
    ],
)
def test_a_restart_is_lossy_unless_something_speaks_for_it(
    second: dict[str, Any], recovering: bool
) -> None:
    """R17. A topic that syncs before each acknowledgement is never lossy."""

    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        first = broker(store, SimClock(loop), boot_id="first")

        async def create() -> None:
            await first.create_topics(
                [NewTopic("t", 2), NewTopic("safe", 1, configs={"runnel.durability": "ack"})]
            )

        await one_life(first, create)
        info = dict(second)
        if info.get("clean_epoch") == "mine":
            info["clean_epoch"] = first.broker_epoch
        membership = broker(store, SimClock(loop), seed=2, **info)
        await one_life(membership, nothing)
        for partition in membership.image.topics["t"].partitions:
            assert partition.recovering is recovering
            assert partition.is_led_by(0, membership.broker_epoch)
            assert partition.leader_epoch == 1
        assert not membership.image.topics["safe"].partitions[0].recovering
        # What was lost stays lost: a later restart that loses nothing does not undo it.
        later = broker(store, SimClock(loop), seed=3, clean_epoch=membership.broker_epoch)
        await one_life(later, nothing)
        assert later.image.topics["t"].partitions[0].leader_epoch == 2
        assert later.image.topics["t"].partitions[0].recovering is recovering

    run(main)


def test_a_lossy_life_between_two_looks_is_not_forgotten() -> None:
    """The controller may see only the second of two restarts; the first one lost the tail."""

    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        first = broker(store, SimClock(loop), boot_id="a")
        (topic,) = (NewTopic("t", 1),)

        async def create() -> None:
            await first.create_topics([topic])

        await one_life(first, create)
        await broker(store, SimClock(loop), seed=2, boot_id="b").register()  # and dies at once
        third = broker(store, SimClock(loop), seed=3, boot_id="b")
        await one_life(third, nothing)
        assert third.image.topics["t"].partitions[0].recovering

    run(main)


def test_create_and_delete() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        membership = broker(store, SimClock(loop))

        async def work() -> None:
            new = [
                NewTopic("a.b", 2, configs={"retention.ms": "5"}),
                NewTopic("a_b", 1),
                NewTopic("a.b", 1),
                NewTopic("default"),
                NewTopic("replicated", 1, 2),
            ]
            results = await membership.create_topics(new)
            codes = [r.code if isinstance(r, RunnelError) else None for r in results]
            assert codes == [
                None,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                ErrorCode.TOPIC_ALREADY_EXISTS,
                None,
                ErrorCode.INVALID_REPLICATION_FACTOR,
            ]
            topic = created(results[0])
            assert membership.image.topics_by_id[topic.id] is membership.image.topics["a.b"]
            assert topic.configs == {"retention.ms": "5"}
            assert len(created(results[3]).partitions) == 3
            (planned,) = await membership.create_topics([NewTopic("c", 4)], validate_only=True)
            assert len(created(planned).partitions) == 4
            assert "c" not in membership.image.topics
            deleted = await membership.delete_topics([topic.id, bytes(16)])
            assert deleted[0] is None
            assert deleted[1] is not None and deleted[1].code is ErrorCode.UNKNOWN_TOPIC_ID
            assert "a.b" not in membership.image.topics
            (again,) = await membership.create_topics([NewTopic("a.b", 1)])
            assert created(again).id != topic.id and created(again).configs == {}

        await one_life(membership, work)
        keys = [entry.key for entry in (await store.read("")).entries]
        assert sum(key.startswith("part/") for key in keys) == 4
        assert not any(key.startswith("config/") for key in keys)

    run(main)


def test_an_interrupted_creation_is_swept() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        await store.txn(
            [], [Put(f"config/topic/{bytes(15).hex()}07", b'{"version":1,"values":{}}')]
        )
        membership = broker(store, SimClock(loop))
        await one_life(membership, nothing)
        assert not membership.image.unnamed
        assert (await store.read("config/")).entries == []

    run(main)


def test_a_second_process_with_the_same_id_is_refused() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        first, second = broker(store, SimClock(loop)), broker(store, SimClock(loop), seed=2)

        async def work() -> None:
            with pytest.raises(RunnelError) as raised:
                await second.register()
            assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION

        await one_life(first, work)
        assert await second.register() > first.broker_epoch, "once the first is gone, it may"

    run(main)


def test_the_loss_of_all_leases_changes_no_leader() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        membership = broker(store, SimClock(loop))

        async def work() -> None:
            await membership.create_topics([NewTopic("t", 5)])
            before = membership.image.topics["t"]
            store.lose_all_leases()
            await asyncio.sleep(10)
            assert membership.image.brokers[0].ready and membership.is_controller
            assert membership.image.topics["t"] == before
            store.down = True
            (result,) = await membership.create_topics([NewTopic("u")])
            assert isinstance(result, RunnelError) and result.code is ErrorCode.REQUEST_TIMED_OUT
            await asyncio.sleep(30)
            assert membership.image.topics["t"] == before, "the data plane goes on"
            store.down = False
            await asyncio.sleep(10)
            assert membership.image.brokers[0].ready and membership.is_controller
            assert membership.lease_deadline_ms > SimClock(loop).monotonic_ms()
            created((await membership.create_topics([NewTopic("u")]))[0])

        await one_life(membership, work)

    run(main)


def test_a_newer_feature_level_is_refused() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        await store.txn([], [Put("cluster", b'{"cluster_id":"x","feature_level":2,"version":3}')])
        with pytest.raises(RunnelError) as raised:
            await broker(store, SimClock(loop)).register()
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION

    run(main)


class RecordingStore(FakeStore):
    """Remembers every transaction, to apply it once more when nobody expects it."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))
        self.sent: list[tuple[Sequence[Compare], Sequence[Put | Delete]]] = []
        self.lost_answers = 0

    async def txn(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> TxnResult:
        self.sent.append((compares, writes))
        result = await super().txn(compares, writes)
        if self.lost_answers:
            self.lost_answers -= 1
            return TxnResult(Outcome.UNKNOWN, 0)
        return result


def test_a_transaction_that_comes_late_changes_nothing() -> None:
    """Above all, the creation of a topic that was deleted since does not bring it back."""

    async def main(loop: SimLoop) -> None:
        store = RecordingStore()
        membership = broker(store, SimClock(loop))

        async def work() -> None:
            results = await membership.create_topics([NewTopic("kept", 2), NewTopic("gone", 200)])
            await membership.delete_topics([created(results[1]).id])
            await membership.allocate_producer_ids()
            before = membership.image
            sent = list(store.sent)
            for compares, writes in sent:
                await store.txn(compares, writes)
            await asyncio.sleep(1)
            after = membership.image
            assert (after.topics, after.unnamed) == (before.topics, before.unnamed)
            assert (after.brokers, after.controller) == (before.brokers, before.controller)
            assert after.producer_ids == before.producer_ids

        await one_life(membership, work)

    run(main)


def test_an_epoch_whose_answer_was_lost_is_taken_over() -> None:
    async def main(loop: SimLoop) -> None:
        store = RecordingStore()
        await one_life(broker(store, SimClock(loop)), nothing)
        store.lost_answers = 1
        membership = broker(store, SimClock(loop), seed=2)
        await one_life(membership, nothing)
        (entry,) = (await store.read("epoch/0")).entries
        assert (entry.version, entry.mod_revision) == (2, membership.broker_epoch)

    run(main)


def test_three_brokers_and_the_restart_of_one() -> None:
    async def main(loop: SimLoop) -> None:
        store = FakeStore(random.Random(1))
        clock = SimClock(loop)
        members = [broker(store, clock, seed=n, id=n, boot_id="b") for n in range(3)]
        async with asyncio.TaskGroup() as tasks:
            for member in members:
                await member.register()
                await member.start(tasks)
            await asyncio.sleep(1)
            assert [member.is_controller for member in members] == [True, False, False]
            (refused,) = await members[1].create_topics([NewTopic("t")])
            assert isinstance(refused, RunnelError) and refused.code is ErrorCode.NOT_CONTROLLER
            configs = {"min.insync.replicas": "3"}
            new = [NewTopic("strict", 6, 3, configs=configs), NewTopic("loose", 6, 3)]
            for result in await members[0].create_topics(new):
                created(result)
            await asyncio.sleep(1)
            assert all(member.image.topics == members[0].image.topics for member in members)
            await members[2].stop()
            again = broker(store, clock, seed=7, id=2, boot_id="b")
            await again.register()
            await again.start(tasks)
            me = Member(2, again.broker_epoch)
            for partition in again.image.topics["strict"].partitions:
                assert partition.elr == (me,), "below the minimum its claim is kept"
                assert sorted(partition.isr_ids) == [0, 1]
            for partition in again.image.topics["loose"].partitions:
                assert partition.elr == () and sorted(partition.isr_ids) == [0, 1]
                assert partition.leader in (0, 1)
                assert partition.leader_epoch == (1 if partition.replicas[0] == 2 else 0)
            assert not any(p.recovering for p in again.image.topics["strict"].partitions)
            for member in (*members[:2], again):
                await member.stop()

    run(main)
