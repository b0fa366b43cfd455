"""Who may not do something with a group or a transactional id is told so, and changes nothing."""

import pytest

from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.describe_groups import DescribeGroupsRequest
from runnel.wire.messages.describe_transactions import DescribeTransactionsRequest
from runnel.wire.messages.end_txn import EndTxnRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.offset_delete import OffsetDeleteRequest
from tests.support.asking import create
from tests.support.asking_groups import commit, fetch_offsets, find
from tests.support.desk import Desk, at_desk

NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class _NothingOf:
    """An authorizer that forbids all that concerns these."""

    def __init__(self, *resources: Resource) -> None:
        self._resources = resources

    def allows(
        self, _principal: str, _host: str, _operation: Operation, resource: Resource, _name: str
    ) -> bool:
        return resource not in self._resources


REQUESTS = [
    (HeartbeatRequest(group_id="g"), NO_GROUP),
    (OffsetDeleteRequest(group_id="g"), NO_GROUP),
    (DeleteGroupsRequest(groups_names=["g"]), NO_GROUP),
    (DescribeGroupsRequest(groups=["g"]), NO_GROUP),
    (FindCoordinatorRequest(coordinator_keys=["g"]), NO_GROUP),
    (FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), NO_ID),
    (InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), NO_ID),
    (EndTxnRequest(transactional_id="tx"), NO_ID),
    (DescribeTransactionsRequest(transactional_ids=["tx"]), NO_ID),
]


@pytest.mark.parametrize(("request_", "code"), REQUESTS)
def test_each_api_asks_for_the_right_it_needs(request_: object, code: ErrorCode) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        assert await commit(desk, {0: 5}) == [0]
        desk.broker._dispatch._authorizer = _NothingOf(Resource.GROUP, Resource.TRANSACTIONAL_ID)
        response = await desk.ask(request_)
        parts = (
            getattr(response, name, None)
            for name in ("results", "groups", "coordinators", "transaction_states")
        )
        (answer,) = next(filter(None, parts), [response])
        assert answer.error_code == code
        if isinstance(request_, FindCoordinatorRequest):
            assert answer.error_message.endswith("authorization failed."), "as Kafka says it"
        desk.broker._dispatch._authorizer = None
        assert await fetch_offsets(desk) == {("t", 0): (5, "", 0)}

    at_desk(test)
