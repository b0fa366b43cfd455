"""What loads on coordinators share: waiting until one is there, and leaving nothing behind."""

import time
from collections.abc import Iterable

from runnel.bench.pipeline import LoadError
from runnel.client.coordinators import KeyType
from runnel.client.raw import WireClient
from runnel.errors import ErrorCode
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest

TIMEOUT_S = 60.0
POLL_S = 0.01
GROUPS_AT_ONCE = 100
PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,  # what Kafka makes of a produce that meets one of these
    }
)


def await_coordinator(client: WireClient, kind: KeyType, key: str) -> None:
    """The first to ask brings the internal topic into being. Raises LoadError."""
    deadline, request = time.monotonic() + TIMEOUT_S, FindCoordinatorRequest()
    request.key_type, request.coordinator_keys = kind, [key]
    while time.monotonic() < deadline:
        (found,) = client.call(request).coordinators
        if not found.error_code:
            return
        if found.error_code not in PASSING:
            break
        time.sleep(POLL_S)
    raise LoadError(f"no coordinator of {key}: {ErrorCode(found.error_code).name}")


def delete_groups(client: WireClient, groups: Iterable[str]) -> None:
    """They have no members. What was never there is as good as deleted."""
    names = list(groups)
    for first in range(0, len(names), GROUPS_AT_ONCE):
        request = DeleteGroupsRequest(groups_names=names[first : first + GROUPS_AT_ONCE])
        for row in client.call(request).results:
            if row.error_code not in (0, ErrorCode.GROUP_ID_NOT_FOUND):
                raise LoadError(f"{row.group_id} is not deleted: {ErrorCode(row.error_code).name}")
