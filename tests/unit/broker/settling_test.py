"""Waiting for what is committed: one who leaves takes nobody's answer along."""

import asyncio

from runnel.broker.settling import until
from runnel.broker.waiting import Parked, Waiting
from runnel.types import Waitable


def test_who_waits_twice_for_one_thing_leaves_it_once() -> None:
    async def test() -> None:
        waiting, thing = Waiting(asyncio.get_running_loop()), Waitable()
        cancel = waiting.park(Parked([thing, thing], 60_000, lambda _final: None), print)
        assert len(thing.waiters) == waiting.parked_count() == 1
        cancel()
        cancel()
        assert thing.waiters == {}
        assert waiting.parked_count() == 0

    asyncio.run(test())


def test_who_is_cancelled_as_it_comes_true_keeps_no_answer_from_others() -> None:
    async def test() -> None:
        waiting, thing, answers = Waiting(asyncio.get_running_loop()), Waitable(), list[str]()
        is_so = False
        leaves = asyncio.create_task(until(waiting, [thing], 60_000, lambda: is_so))
        await asyncio.sleep(0)
        waiting.park(Parked([thing], 60_000, lambda _final: "yes"), answers.append)
        is_so = True
        waiting.moved(thing)
        leaves.cancel()
        await asyncio.sleep(0.01)
        assert leaves.cancelled()
        assert answers == ["yes"]
        assert thing.waiters == {}

    asyncio.run(test())
