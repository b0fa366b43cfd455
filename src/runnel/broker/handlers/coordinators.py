"""FindCoordinator (key 10, v0-v6): who coordinates a group or a transactional id. Nobody, yet.

Version notes: up to v3 one key is asked for, from v4 on several.

There is no coordinator in this broker. A group is told to ask again later, because librdkafka asks
for one even if it only reads assigned partitions, and gives up on any other error; a transaction
cannot do without one, and is told so for good. The API is served all the same because librdkafka
takes its presence for the sign of a broker that understands lz4, and would silently send
uncompressed batches.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.errors import ErrorCode
from runnel.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_KEYS: Final = 4
TRANSACTION: Final = 1
WHY: Final = "this broker coordinates no groups and no transactions; assign partitions instead"


def find_coordinator(
    context: RequestContext, services: Services, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.key_type == TRANSACTION:
        code = ErrorCode.INVALID_REQUEST
    if context.api_version < FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=WHY, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=WHY)
            for key in request.coordinator_keys
        ]
    )
