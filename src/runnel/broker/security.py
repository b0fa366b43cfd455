"""Who may do what. Every API names the right it needs; without an authorizer all have it.

The seam is here so that switching on ACLs changes this file and not the handlers: a handler asks
`context.may(...)` for each resource that it touches, and dispatch asks for cluster-wide rights
before the handler runs.
"""

from enum import IntEnum
from typing import NamedTuple, Protocol

from runnel.errors import ErrorCode


class Operation(IntEnum):
    """Kafka's AclOperation codes, as clients see them in `authorized_operations`."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Resource(IntEnum):
    """Kafka's ResourceType codes."""

    NONE = 0  # the API needs no right
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Right(NamedTuple):
    """What an API needs: dispatch checks it if it is the cluster's, else the handler does."""

    operation: Operation
    resource: Resource


CLUSTER_NAME = "kafka-cluster"
REFUSALS = {
    Resource.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    Resource.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    Resource.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    Resource.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}
TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DESCRIBE,
    Operation.DELETE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)


class Authorizer(Protocol):
    def allows(
        self, principal: str, host: str, operation: Operation, resource: Resource, name: str
    ) -> bool: ...
