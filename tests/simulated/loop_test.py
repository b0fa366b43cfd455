"""The ground the simulator stands on: time, standstill, death."""

import asyncio

import pytest

from tests.simulated import loop as simulated
from tests.simulated.loop import Process, SimClock, SimLoop, StalledError


def test_sleeping_moves_the_time_and_takes_none() -> None:
    async def main(loop: SimLoop) -> float:
        began = loop.time()
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(86_400))
        return loop.time() - began

    assert simulated.run(main) == pytest.approx(86_400)


def test_waiting_for_nobody_is_an_error() -> None:
    async def main(loop: SimLoop) -> None:
        await loop.create_future()

    with pytest.raises(StalledError):
        simulated.run(main)


def test_an_exception_nobody_awaits_fails_the_run() -> None:
    async def main(loop: SimLoop) -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        simulated.run(main)


def test_a_killed_process_runs_no_further_step_and_no_cleanup() -> None:
    done: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(2)
            done.append("child")
        finally:
            done.append("cleanup")

    async def body() -> None:
        task = asyncio.create_task(child())
        asyncio.get_running_loop().call_later(1.5, done.append, "timer")
        await asyncio.sleep(0.5)
        done.append("before")
        await task

    async def main(loop: SimLoop) -> list[str]:
        process = Process(loop, "broker")
        process.spawn(body())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(5)
        return list(done)

    assert simulated.run(main) == ["before"]


def test_the_wall_clock_jumps_and_the_monotonic_one_does_not() -> None:
    async def main(loop: SimLoop) -> tuple[int, int]:
        clock = SimClock(loop)
        wall_ms, monotonic_ms = clock.wall_ms(), clock.monotonic_ms()
        clock.jumped_ms = 10_000
        await asyncio.sleep(1)
        return clock.wall_ms() - wall_ms, clock.monotonic_ms() - monotonic_ms

    assert simulated.run(main) == (11_000, 1_000)
