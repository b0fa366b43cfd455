"""What the settings of groups do, see `effects.py`."""

from collections.abc import Awaitable, Callable

from runnel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.asking import create
from tests.support.desk import Desk

Change = Callable[[str], Awaitable[None]]


async def assignment_interval_ms(desk: Desk, change: Change) -> None:
    """How soon after the last target assignment another one is computed."""
    await create(desk, "t", 2)
    await desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))

    async def joined_in(member_id: str) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        epoch: int = (await desk.ask(request)).member_epoch
        return epoch

    await change("60000")
    assert [await joined_in("a"), await joined_in("b")] == [2, 2]
    await change("0")
    assert await joined_in("c") == 4
