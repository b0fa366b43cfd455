"""InitProducerId (key 22, v0-v5): a number that makes a producer's retries recognisable.

Version notes: v2 is flexible; v3 lets a producer ask for the next epoch of the id it has; v6 is
unstable and not served. With a transactional id it is the transaction coordinator that answers:
whoever asks last owns the id, and all before are fenced.
"""

from collections.abc import Coroutine
from typing import Any

from runnel.broker.context import RequestContext, Services
from runnel.broker.waiting import Parked
from runnel.errors import RunnelError
from runnel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

Answer = InitProducerIdResponse | Parked[InitProducerIdResponse]


def init_producer_id(
    context: RequestContext, services: Services, request: InitProducerIdRequest
) -> Answer | Coroutine[Any, Any, Answer]:
    if request.transactional_id is None or services.producer_ids.is_empty:
        return _with_an_id(context, services, request)
    return _transactional(context, services, request)


async def _with_an_id(
    context: RequestContext, services: Services, request: InitProducerIdRequest
) -> Answer:
    try:
        if request.transactional_id is None:
            producer_id = await services.producer_ids.next()
            return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        await services.producer_ids.ensure()
    except RunnelError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
    return _transactional(context, services, request)


def _transactional(
    context: RequestContext, services: Services, request: InitProducerIdRequest
) -> Answer:
    from runnel.broker.handlers.transactions import init_transactional_producer

    return init_transactional_producer(context, services, request)
