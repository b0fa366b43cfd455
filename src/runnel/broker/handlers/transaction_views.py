"""DescribeTransactions (key 65, v0) and ListTransactions (key 66, v0-v2): for those who look.

Version notes: ListTransactions v1 filters by how long a transaction runs, v2 by a pattern of
transactional ids, which is RE2's, so that no pattern takes longer than the text is long.
"""

from collections.abc import Iterator

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import Operation, Resource
from runnel.broker.settling import settle
from runnel.broker.turns import ITEMS_PER_STEP, Taken, take_turns
from runnel.broker.waiting import Parked
from runnel.coordinator.regex import compile_regex
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.listing import Filter, described, listed
from runnel.coordinator.transactions.machine import TransactionMachine, ensure_transactional_id
from runnel.coordinator.transactions.transaction import LABELS, indexes_by_topic
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages import describe_transactions as describe
from runnel.wire.messages import list_transactions as list_


def describe_transactions(
    context: RequestContext, services: Services, request: describe.DescribeTransactionsRequest
) -> describe.DescribeTransactionsResponse | Parked[describe.DescribeTransactionsResponse]:
    shards: dict[Shard[TransactionMachine], None] = {}
    rows = [_describe(context, services, each, shards) for each in request.transactional_ids]

    def failed(code: ErrorCode) -> describe.DescribeTransactionsResponse:
        return describe.DescribeTransactionsResponse(
            transaction_states=[
                describe.TransactionState(transactional_id=each, error_code=code)
                for each in request.transactional_ids
            ]
        )

    response = describe.DescribeTransactionsResponse(transaction_states=rows)
    return settle(list(shards), response, failed)


def _describe(
    context: RequestContext,
    services: Services,
    transactional_id: str,
    shards: dict[Shard[TransactionMachine], None],
) -> describe.TransactionState:
    try:
        context.ensure_may(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id)
        shard = services.transactions.shard_of(ensure_transactional_id(transactional_id))
        found = described(shard.machine, transactional_id)
    except RunnelError as error:
        return describe.TransactionState(transactional_id=transactional_id, error_code=error.code)
    shards[shard] = None
    return describe.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[
            describe.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in indexes_by_topic(found.partitions).items()
            if context.may(Operation.DESCRIBE, Resource.TOPIC, topic)
        ],
    )


def list_transactions(
    context: RequestContext, services: Services, request: list_.ListTransactionsRequest
) -> Taken[list_.ListTransactionsResponse]:
    def failed(code: ErrorCode) -> list_.ListTransactionsResponse:
        return list_.ListTransactionsResponse(error_code=code)

    if services.transactions.is_loading():
        return failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = request.transactional_id_pattern
    try:
        matches = compile_regex(pattern) if pattern else None  # none and the empty one mean all
    except RunnelError as error:
        return failed(error.code)
    states = [LABELS[name] for name in request.state_filters if name in LABELS]
    wanted = Filter(
        states if request.state_filters else None,
        frozenset(request.producer_id_filters),
        request.duration_filter,
        matches,
    )
    shards = list(services.transactions)
    now_ms = services.clock.wall_ms()
    response = list_.ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in LABELS]
    )

    def steps() -> Iterator[None]:
        for shard in shards:
            all_there = list(shard.machine.transactions.values())
            for start in range(0, len(all_there), ITEMS_PER_STEP):
                some = listed(all_there[start : start + ITEMS_PER_STEP], wanted, now_ms)
                response.transaction_states += [
                    list_.TransactionState(
                        transactional_id=found.transactional_id,
                        producer_id=found.producer_id,
                        transaction_state=found.state.label,
                    )
                    for found in some
                    if context.may(
                        Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, found.transactional_id
                    )
                ]
                yield

    return take_turns(steps(), lambda: settle(shards, response, failed), services.clock)
