"""Goal: Fetch gives what is there within its limits, and says what is wrong."""

import asyncio
from typing import Any

import pytest

from runnel.broker.context import RequestContext
from runnel.broker.handlers import fetch as fetch_handler
from runnel.broker.handlers.fetch_plan import Plan, make_plan
from runnel.client.raw import ClosedError
from runnel.errors import ErrorCode
from runnel.wire import hot
from tests.support.asking import (
    FETCH_BY_NAME,
    batch,
    create,
    fetch_request,
    produce,
    values_of,
)
from tests.support.desk import Desk, at_desk


def test_fetch_limits_and_errors() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for n in range(3):
            await produce(desk, batch(b"%d" % n * 5000, b"x"))
        middle = await desk.ask(fetch_request(3), FETCH_BY_NAME)
        assert len(values_of(middle)) == 4, "a fetch into a batch gives the whole batch"
        first = await desk.ask(fetch_request(0, max_bytes=10), FETCH_BY_NAME)
        assert len(values_of(first)) == 2, "the first batch is given whole"
        code = {}
        for offset in (-1, 6, 7):
            response = await desk.ask(fetch_request(offset), FETCH_BY_NAME)
            code[offset] = response.responses[0].partitions[0].error_code
        assert code == {-1: ErrorCode.OFFSET_OUT_OF_RANGE, 6: 0, 7: ErrorCode.OFFSET_OUT_OF_RANGE}
        for epoch, expected in ((5, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)):
            response = await desk.ask(fetch_request(0, current_leader_epoch=epoch), FETCH_BY_NAME)
            assert response.responses[0].partitions[0].error_code == expected
        refused = await desk.ask(fetch_request(0, replica_id=2), FETCH_BY_NAME)
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    at_desk(test)


def test_a_reader_that_went_another_way_is_told_where() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"a"))
        partition = desk.broker.partitions.get("t", 0)
        partition.lead(1, 4, 1, 1)
        await produce(desk, batch(b"b"))
        response = await desk.ask(fetch_request(2, last_fetched_epoch=0), FETCH_BY_NAME)
        diverging = response.responses[0].partitions[0].diverging_epoch
        assert (diverging.epoch, diverging.end_offset) == (0, 1)
        agreeing = await desk.ask(fetch_request(2, last_fetched_epoch=4), FETCH_BY_NAME)
        assert agreeing.responses[0].partitions[0].diverging_epoch.epoch == -1

    at_desk(test)


@pytest.mark.skipif(hot.COMPILED, reason="compiled code does not look up a replaced function")
def test_a_parked_request_that_fails_costs_only_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def fragile(context: RequestContext, *rest: Any, **named: Any) -> Plan:  # noqa: ANN401  # passed on
        found = make_plan(context, *rest, **named)
        assert not (context.client_id == "broken" and found.size_bytes), "planted"
        return found

    async def test(desk: Desk) -> None:
        await create(desk)
        broken = Desk(desk.broker, desk.clock, client_id="broken")
        well = Desk(desk.broker, desk.clock)
        request = fetch_request(max_wait_ms=5000)
        lost = asyncio.ensure_future(broken.ask(request, FETCH_BY_NAME))
        found = asyncio.ensure_future(well.ask(request, FETCH_BY_NAME))
        await asyncio.sleep(0.1)
        await produce(desk, batch(b"v"))
        assert values_of(await found) == [b"v"]
        with pytest.raises(ClosedError):
            await lost
        partition = desk.broker.partitions.get("t", 0)
        assert not partition.waiters, "it would fail again with every record"

    monkeypatch.setattr(fetch_handler, "make_plan", fragile)
    at_desk(test)
