"""Fetch (key 1, v4-v18): plan which bytes of which files go out; the kernel sends them.

Version notes: v7 brought sessions, v9 the leader epoch, v12 flexible fields and diverging epochs,
v13 topic ids, v15 moved the replica id into a tagged field.

Planning is pure and cheap (`fetch_plan.py`), so it is done again whenever a parked fetch wakes:
nothing that was read before the wait is sent after it. A plan that would have to read from a disk
to find an offset is made again when a worker has read that.
"""

from collections.abc import Coroutine
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.fetch_sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    Session,
    TopicKey,
)
from runnel.broker.handlers.fetch_plan import READ_COMMITTED, Plan, make_plan
from runnel.broker.waiting import Parked
from runnel.broker.watching import Watch
from runnel.errors import ErrorCode, RunnelError
from runnel.metrics import FETCHED_BYTES, FETCHES_PARKED
from runnel.types import Waitable
from runnel.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

FIRST_VERSION_WITH_SESSIONS: Final = 7
FIRST_VERSION_BY_ID: Final = 13
# Kept here: a name that is imported is looked for at every call.
_Response: Final = FetchResponse
_TopicResponse: Final = FetchableTopicResponse
COLD_TRIES: Final = 4  # an index, the batches after it, and what went cold again meanwhile


Answer = FetchResponse | Parked[FetchResponse]


def fetch(
    context: RequestContext, services: Services, request: FetchRequest
) -> Answer | Coroutine[Any, Any, Answer]:
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise RunnelError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "replicas fetch on the inter-broker listener"
        )
    if services.quotas.is_active:
        size_max = services.quotas.fetch_bytes_max(context.principal, context.client_id)
        request.max_bytes = min(request.max_bytes, size_max)
    fetching = Fetching(context, services, request)
    watch = fetching.watch
    if watch is not None and fetching.is_as_before(watch):
        return fetching.park([watch.fetches])
    plan = fetching.plan(wait=False)
    return fetching.warm_and_answer(plan) if plan.cold else fetching.answer(plan)


class Fetching:
    """One fetch, from its arrival until it is answered."""

    __slots__ = (
        "_bytes_max",
        "_committed_only",
        "_context",
        "_is_full",
        "_is_quiet",
        "_min_bytes",
        "_request",
        "_services",
        "_session",
        "watch",
    )

    def __init__(self, context: RequestContext, services: Services, request: FetchRequest) -> None:
        self._context = context
        self._services = services
        self._request = request
        self._bytes_max = min(request.max_bytes, services.settings.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._bytes_max)  # of three it would be a call
        self._committed_only = request.isolation_level == READ_COMMITTED
        by_id = context.api_version >= FIRST_VERSION_BY_ID
        self._session, self._is_full = _session(context, services, request, by_id)
        self.watch = self._session.watch
        # Nothing to tell when it was planned last: whoever moves since then makes it plan again.
        self._is_quiet = False

    def is_as_before(self, watch: Watch) -> bool:
        """Nothing was to be told, the client asks for the same, and the watch has seen nothing."""
        request = self._request
        if not watch.says_quiet(self._committed_only):
            return False
        if not request.topics and not request.forgotten_topics_data and not self._is_full:
            self._is_quiet = self._min_bytes > 0 and request.max_wait_ms > 0
        return self._is_quiet

    def plan(self, *, wait: bool) -> Plan:
        if self.watch is not None:
            self.watch.lift()
        plan = make_plan(
            self._context,
            self._services,
            self._session,
            bytes_max=self._bytes_max,
            committed_only=self._committed_only,
            is_full=self._is_full,
            wait=wait,
        )
        self._is_quiet = not plan.served
        return plan

    def attempt(self, final: bool) -> FetchResponse | None:
        if final and self._is_quiet:
            return FetchResponse(session_id=self._session.id)
        plan = self.plan(wait=True)
        if final or plan.cannot_wait or plan.size_bytes >= self._min_bytes:
            return self._respond(plan)
        if self.watch is not None:
            self._set(self.watch, plan)
        return None

    def answer(self, plan: Plan) -> Answer:
        max_wait_ms = self._request.max_wait_ms
        if (
            plan.size_bytes >= self._min_bytes
            or plan.cannot_wait
            or max_wait_ms <= 0
            or not plan.on
        ):
            return self._respond(plan)
        if self.watch is None:
            return self.park(plan.on)
        self._set(self.watch, plan)
        return self.park([self.watch.fetches])

    def park(self, on: list[Waitable]) -> Parked[FetchResponse]:
        self._services.metrics.slots[FETCHES_PARKED] += 1
        return Parked(on, self._request.max_wait_ms, self.attempt)

    def _set(self, watch: Watch, plan: Plan) -> None:
        """Rights may be taken away without a partition's moving: who has to have some plans."""
        is_quiet = self._is_quiet and self._context.authorizer is None
        watch.set(plan.on, is_quiet, self._committed_only)

    def _respond(self, plan: Plan) -> FetchResponse:
        session = self._session
        topics: dict[TopicKey, list[PartitionData]] = {}
        for served in plan.served:
            wanted = served.wanted
            if not (wanted.is_news(served) or self._is_full):
                continue
            partitions = topics.get(wanted.topic)
            if partitions is None:
                topics[wanted.topic] = [served.data]
            else:
                partitions.append(served.data)
            if served.size and session.id != NO_SESSION:
                session.serve_last(wanted)
        self._services.metrics.slots[FETCHED_BYTES] += plan.size_bytes
        responses = [_of_topic(key, partitions) for key, partitions in topics.items()]
        return _Response(session_id=session.id, responses=responses)

    async def warm_and_answer(self, plan: Plan) -> Answer:
        for tries_left in reversed(range(COLD_TRIES)):
            await self._services.warming.read(plan.cold)
            plan = self.plan(wait=tries_left == 0)
            if not plan.cold:
                break
        return self.answer(plan)


def _of_topic(key: TopicKey, partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(key, str):
        return _TopicResponse(topic=key, partitions=partitions)
    return _TopicResponse(topic_id=key, partitions=partitions)


def _session(
    context: RequestContext, services: Services, request: FetchRequest, by_id: bool
) -> tuple[Session, bool]:
    """The partitions that this request is about, and whether all of them must be answered."""
    sessions = services.sessions
    now_ms = services.clock.monotonic_ms()
    epoch = request.session_epoch if context.api_version >= FIRST_VERSION_WITH_SESSIONS else -1
    if epoch not in (FIRST_EPOCH, FINAL_EPOCH):
        session = sessions.resume(request.session_id, epoch, now_ms)
        session.update(request, by_id)
        return session, False
    if request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    if epoch == FINAL_EPOCH:
        session = Session(NO_SESSION, now_ms)
    else:
        size = sum(len(topic.partitions) for topic in request.topics)
        session = sessions.open(size, now_ms)
    session.update(request, by_id)
    return session, True
