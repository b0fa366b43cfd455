"""Who coordinates a group or a transactional id, and asking it until it can answer."""

from collections.abc import Callable
from enum import IntEnum
from typing import Final, TypeVar

from runnel.client.cluster import Cluster, RefusedError
from runnel.wire.apis import ApiKey
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest

MANY_KEYS_SINCE: Final = 4
_Result = TypeVar("_Result")


class KeyType(IntEnum):
    """What is coordinated, by the number on the wire."""

    GROUP = 0
    TRANSACTION = 1


SUBJECTS: Final = {KeyType.GROUP: "group", KeyType.TRANSACTION: "transactional id"}


def find_coordinator(cluster: Cluster, kind: KeyType, key: str) -> int:
    """The number of its broker. Raises RefusedError, also if there is none at the moment."""
    version = cluster.version_of(ApiKey.FIND_COORDINATOR)
    if version >= MANY_KEYS_SINCE:
        many = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        (found,) = cluster.call(many).coordinators
    else:
        found = cluster.call(FindCoordinatorRequest(key=key, key_type=kind))
    if found.error_code:
        raise RefusedError(found.error_code, found.error_message, f"{SUBJECTS[kind]} {key}")
    node_id: int = found.node_id
    return node_id


def asked(cluster: Cluster, kind: KeyType, key: str, attempt: Callable[[int], _Result]) -> _Result:
    """What `attempt` returns for the coordinator's number; it is looked up before each try."""
    return cluster.retried(lambda: attempt(find_coordinator(cluster, kind, key)))
