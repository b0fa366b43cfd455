"""Waiting for what is committed: one who leaves takes nobody's answer along."""

import asyncio
from typing import Any

from runnel.broker.settling import until
from runnel.broker.waiting import Parked, Waiting


class _Thing:
    def __init__(self) -> None:
        self.waiters: dict[Any, None] = {}


def test_who_is_cancelled_as_it_comes_true_keeps_no_answer_from_others() -> None:
    async def test() -> None:
        waiting, thing, answers = Waiting(asyncio.get_running_loop()), _Thing(), list[str]()
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
