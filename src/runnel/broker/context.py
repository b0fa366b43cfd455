"""What a handler is given besides its request: who asks, by which door; the broker's parts."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runnel.broker.coordinators import Coordinators
from runnel.broker.fetch_sessions import FetchSessions
from runnel.broker.flusher import Flusher
from runnel.broker.gathering import Gathering
from runnel.broker.log_dirs import LogDirs
from runnel.broker.partitions import Partitions
from runnel.broker.producer_ids import ProducerIds
from runnel.broker.quotas import Mutations, Quotas
from runnel.broker.security import REFUSALS, Authorizer, Operation, Resource
from runnel.broker.topics import Topics
from runnel.broker.upkeep import Upkeep
from runnel.broker.waiting import Waiting
from runnel.broker.warming import Warming
from runnel.cluster.image import Image
from runnel.cluster.membership import Membership
from runnel.config.settings import Settings
from runnel.errors import RunnelError
from runnel.metrics import Metrics
from runnel.ports import Clock, Workers

if TYPE_CHECKING:  # a start without groups or transactions need not pay for them
    from runnel.broker.markers import Markers
    from runnel.coordinator.groups.machine import GroupMachine
    from runnel.coordinator.transactions.machine import TransactionMachine


class RequestContext:
    """Made anew for every request; `api_version` decides what a handler may answer."""

    __slots__ = (
        "api_version",
        "authorizer",
        "client_id",
        "host",
        "listener",
        "may_wake",
        "principal",
    )

    def __init__(
        self,
        listener: str,
        principal: str,
        host: str,
        client_id: str,
        api_version: int,
        authorizer: Authorizer | None,
        may_wake: bool = False,
    ) -> None:
        self.listener = listener
        self.principal = principal
        self.host = host
        self.client_id = client_id
        self.api_version = api_version
        self.authorizer = authorizer  # None: everyone may do everything
        self.may_wake = may_wake  # those who wait for what it does, before its reply is made

    def may(self, operation: Operation, resource: Resource, name: str) -> bool:
        authorizer = self.authorizer
        return authorizer is None or authorizer.allows(
            self.principal, self.host, operation, resource, name
        )

    def ensure_may(self, operation: Operation, resource: Resource, name: str) -> None:
        """Raises RunnelError, in Kafka's words for that kind of resource."""
        if not self.may(operation, resource, name):
            raise RunnelError(*REFUSALS[resource])

    def rights(self, resource: Resource, name: str, operations: tuple[Operation, ...]) -> int:
        """Kafka's bit field: bit n is set if operation n is allowed."""
        return sum(
            1 << operation for operation in operations if self.may(operation, resource, name)
        )


@dataclass(slots=True)
class Services:
    """The broker's parts, as handlers use them. Wired once in `server.build`."""

    settings: Settings
    clock: Clock
    workers: Workers
    loop: asyncio.AbstractEventLoop
    membership: Membership
    partitions: Partitions
    sessions: FetchSessions
    flusher: Flusher
    metrics: Metrics
    topics: Topics
    producer_ids: ProducerIds
    upkeep: Upkeep
    warming: Warming
    quotas: Quotas
    log_dirs: LogDirs
    waiting: Waiting
    gathering: Gathering
    groups: "Coordinators[GroupMachine]"
    transactions: "Coordinators[TransactionMachine]"
    markers: "Callable[[], Markers]"  # made when first asked for

    @property
    def image(self) -> Image:
        return self.membership.image

    def mutations(self, context: RequestContext, *, strict_since: int) -> Mutations:
        """What this request may create or delete; older versions do not know the refusal."""
        return self.quotas.mutations(
            context.principal,
            context.client_id,
            self.clock.monotonic_ms(),
            is_strict=context.api_version >= strict_since,
        )
