"""InitProducerId (key 22, v0-v5): a number that makes a producer's retries recognisable.

Version notes: v2 is flexible; v3 lets a producer ask for the next epoch of the id it has; v6 is
unstable and not served. Transactional ids belong to the transaction coordinator, which this
broker does not have: such a client is told so at once and does not wait for it.
"""

from runnel.broker.context import RequestContext, Services
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def init_producer_id(
    context: RequestContext, services: Services, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    try:
        if request.transactional_id is not None:
            code = (
                ErrorCode.NOT_COORDINATOR
                if request.transactional_id
                else (ErrorCode.INVALID_REQUEST)
            )
            raise RunnelError(code, "no transaction coordinator on this broker")
        producer_id = await services.producer_ids.next()
    except RunnelError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
