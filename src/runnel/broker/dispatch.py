"""From a frame to a reply: find the API, check its version, decode, call the handler, encode.

The table of APIs is given; what ApiVersions advertises is derived from it, so nothing is
advertised that does not work. A handler returns a response, a `Parked` request, a `Promised` one
if it was gathered with others, a coroutine where the metadata store or a worker must be asked, or
None where no reply is wanted.

This is one of two places where any exception may be caught: a bug in a handler costs the
connection that met it and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from struct import error as struct_error
from time import monotonic_ns
from typing import Any, Final, NamedTuple

from runnel.broker.complaints import of_request
from runnel.broker.connection import NO_KEY, PRODUCE_KEY, Connection, Part, Pending, Reply
from runnel.broker.context import RequestContext, Services
from runnel.broker.error_codes import Look, look_at_own, look_of
from runnel.broker.gathering import Promised
from runnel.broker.security import CLUSTER_NAME, Authorizer, Resource, Right
from runnel.broker.throttling import Throttling
from runnel.broker.waiting import Parked, Waiting
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.exporter.layout import HISTOGRAM_WORDS, REQUEST_TIMES
from runnel.metrics import Slot
from runnel.types import FileSlice
from runnel.wire import hot
from runnel.wire.apis import (
    APIS,
    ApiKey,
    request_header_version,
    request_type,
    response_header_version,
    response_type,
)
from runnel.wire.compiler import codec_for
from runnel.wire.primitives import skip_tagged_fields as _skip_tags

_log = logging.getLogger(__name__)
# Kept here: a name that is imported is looked for at every call.
_now_ns: Final = monotonic_ns
_read_header: Final = hot.request_header
_new_reply: Final = hot.new_reply
_stamp_reply: Final = hot.stamp_reply
_COUNT_THEIR_OWN: Final = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})  # errors, where they arise

Handler = Callable[[RequestContext, Services, Any], Any]


class ApiRow(NamedTuple):
    """A row of the table: what is served, by which handler, and which right it needs."""

    key: ApiKey
    handler: Handler
    right: Right | None
    advertised_from: int | None = None  # where Kafka advertises more than it serves


class Route:
    """One API in one version, compiled at first use. Every request asks for nearly all of it."""

    __slots__ = (
        "cluster_right",
        "handler",
        "has_error_code",
        "header_is_flexible",
        "key",
        "look_for_errors",
        "read",
        "reply_header_bytes",
        "response_type",
        "times",
        "version",
        "write",
    )

    def __init__(self, row: ApiRow, version: int) -> None:
        key, right = row.key, row.right
        request, response = request_type(key), response_type(key)
        is_of_cluster = right is not None and right.resource is Resource.CLUSTER
        self.key = key
        self.handler = row.handler
        self.cluster_right = right if is_of_cluster else None
        self.version = version
        self.header_is_flexible = request_header_version(key, version) >= 2
        self.read: Callable[[memoryview, int], tuple[Any, int]] = codec_for(request, version).read
        self.write: Callable[[bytearray, Any, list[Any]], bytearray]
        self.write = codec_for(response, version).write_into
        self.response_type: type[Any] = response
        # Size, correlation id, and no tagged fields where there may be some.
        self.reply_header_bytes = 9 if response_header_version(key, version) >= 1 else 8
        self.times = REQUEST_TIMES + key * HISTOGRAM_WORDS  # where its histogram begins
        counts_its_own = key in _COUNT_THEIR_OWN
        self.look_for_errors: Look | None = None if counts_its_own else look_of(response)
        self.has_error_code = self.look_for_errors is look_at_own  # and no other place for errors


class Dispatch:
    """Owned by the broker. `handle` is called by every connection for every frame."""

    __slots__ = (
        "_authorizer",
        "_gathering",
        "_metrics",
        "_quotas",
        "_routes",
        "_rows",
        "_services",
        "_tasks",
        "_throttling",
        "_waiting",
    )

    def __init__(
        self,
        rows: tuple[ApiRow, ...],
        services: Services,
        waiting: Waiting,
        authorizer: Authorizer | None,
    ) -> None:
        self._rows = {int(row.key): row for row in rows}
        self._services = services
        self._waiting = waiting
        self._authorizer = authorizer
        self._metrics = services.metrics
        self._quotas = services.quotas
        self._gathering = services.gathering
        self._gathering.answer_by(self._keep_promise)
        self._throttling = Throttling(
            services.quotas, services.clock, services.loop, services.metrics
        )
        self._routes: dict[tuple[int, int], Route] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, connection: Connection, frame: memoryview) -> Reply:
        """Never raises. A frame that cannot be answered closes its connection."""
        began_ns = _now_ns()
        try:
            key, version, correlation_id, client_id, position = _read_header(frame)
            route = self._routes.get((key, version)) or self._route(key, version)
            if client_id:
                connection.client_id = client_id
            if route.header_is_flexible:
                # Almost always there are no tagged fields: one byte, zero.
                position = position + 1 if not frame[position] else _skip_tags(frame, position)
            context = RequestContext(
                connection.listener,
                connection.principal,
                connection.host,
                client_id,
                version,
                self._authorizer,
                connection.may_wake and not self._quotas.is_active,
            )
            if self._quotas.is_active:
                response = self._call_and_charge(connection, route, context, frame, position)
            else:
                response = self._call(route, context, frame, position)
            kind = type(response)
            if kind is route.response_type:
                parts = self._encode(route, correlation_id, response)
                self._metrics.observe_us(route.times, (_now_ns() - began_ns) // 1000)
                return parts
            if response is None:
                self._metrics.observe_us(route.times, (_now_ns() - began_ns) // 1000)
                return None
            if kind is Promised:
                return self._promise(connection, route, correlation_id, response, began_ns)
            if kind is Parked:
                return self._park(connection, route, correlation_id, response, began_ns)
            return self._start(connection, route, correlation_id, response, began_ns)
        except (WireError, struct_error, IndexError) as error:
            self._metrics.add(Slot.REQUESTS_MALFORMED)
            connection.complaint = of_request(frame)
            connection.close(str(error))
        except Exception:  # noqa: BLE001  # our own bug: it must not cost another connection
            self._metrics.add(Slot.REQUESTS_FAILED)
            fields = of_request(frame).fields
            fields["peer"] = connection.host
            _log.exception("request from %s failed: %s", connection.host, fields, extra=fields)
            connection.close("internal error")
        return None

    def _call(self, route: Route, context: RequestContext, frame: memoryview, position: int) -> Any:  # noqa: ANN401  # a response, Parked, coroutine or None, as the table's handlers give
        if route.version != context.api_version:
            request = None  # ApiVersions in a version we do not know is answered in version 0
        else:
            # Bytes to spare are left unread, as in Kafka: librdkafka sends some after Metadata.
            request, _ = route.read(frame, position)
        try:
            if route.cluster_right is not None:
                _ensure_cluster_right(context, route.cluster_right)
            return route.handler(context, self._services, request)
        except RunnelError as error:
            if route.key in _COUNT_THEIR_OWN:
                self._metrics.add_error(error.code)
            return _error_response(route, error)

    def _call_and_charge(
        self,
        connection: Connection,
        route: Route,
        context: RequestContext,
        frame: memoryview,
        position: int,
    ) -> Any:  # noqa: ANN401  # as `_call`
        began_s = connection.monotonic()
        response = self._call(route, context, frame, position)
        worked_s = connection.monotonic() - began_s
        key = route.key
        return self._throttling.settle(connection, context, key, len(frame), worked_s, response)

    def _encode(self, route: Route, correlation_id: int, response: Any) -> list[Part]:  # noqa: ANN401  # of the class that the route says
        if route.has_error_code:
            if code := response.error_code:
                self._metrics.add_error(code)
        elif route.look_for_errors is not None:
            route.look_for_errors(response, self._metrics.add_error)
        out = _new_reply(route.reply_header_bytes)
        parts: list[Part] = []
        last = route.write(out, response, parts)
        if not parts:
            _stamp_reply(out, len(out) - 4, correlation_id)
            return [out]
        parts.append(last)
        size = 0
        for part in parts:
            size += part.size if isinstance(part, FileSlice) else len(part)
        _stamp_reply(out, size - 4, correlation_id)
        return parts

    def _promise(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        promised: Promised[Any],
        began_ns: int,
    ) -> Pending:
        pending = promised.pending = Pending(connection, route.key)
        promised.route = route
        promised.correlation_id = correlation_id
        promised.began_ns = began_ns
        self._gathering.expect(promised)
        return pending

    def _keep_promise(self, promised: Promised[Any]) -> None:
        """The turn is over: make the reply, which its connection is then asked to send."""
        pending, route, correlation_id = promised.pending, promised.route, promised.correlation_id
        try:
            response = promised.answer()
            if type(response) is Parked:
                self._wait(pending, route, correlation_id, response, promised.began_ns)
                return
            parts = self._encode(route, correlation_id, response)
        except Exception:  # noqa: BLE001  # as in `handle`: the others are to be answered
            self._failed(pending, route, correlation_id)
        else:
            self._metrics.observe_us(route.times, (_now_ns() - promised.began_ns) // 1000)
            pending.due(parts)

    def _park(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        parked: Parked[Any],
        began_ns: int,
    ) -> Pending:
        pending = Pending(connection, PRODUCE_KEY if parked.is_produce else NO_KEY)
        self._wait(pending, route, correlation_id, parked, began_ns)
        return pending

    def _wait(
        self,
        pending: Pending,
        route: Route,
        correlation_id: int,
        parked: Parked[Any],
        began_ns: int,
    ) -> None:
        attempt = parked.attempt

        def guarded(final: bool) -> object | None:
            try:
                return attempt(final)
            except Exception:  # noqa: BLE001  # as in `handle`: nobody else who waits pays for it
                self._failed(pending, route, correlation_id)
                return None

        def answer(response: object) -> None:
            try:
                parts = self._encode(route, correlation_id, response)
            except Exception:  # noqa: BLE001  # likewise: they are all woken in one go
                self._failed(pending, route, correlation_id)
            else:
                took_us = (_now_ns() - began_ns) // 1000  # settling handles what stands behind it
                pending.settle(parts)
                self._metrics.observe_us(route.times, took_us)

        parked.attempt = guarded
        pending.cancel = self._waiting.park(parked, answer)

    def _start(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        work: Coroutine[Any, Any, object],
        began_ns: int,
    ) -> Pending:
        """Run a handler that waits. It is not cancelled with its connection: it finishes."""
        pending = Pending(connection)

        async def run() -> None:
            try:
                response = await work
                if type(response) is Parked:
                    self._wait(pending, route, correlation_id, response, began_ns)
                    return
                parts = None
                if response is not None:
                    parts = self._encode(route, correlation_id, response)
                self._metrics.observe_us(route.times, (_now_ns() - began_ns) // 1000)
                pending.settle(parts)
            except WireError as error:
                pending.abandon(str(error))
            except Exception:  # noqa: BLE001  # as in `handle`: one connection pays for our bug
                self._failed(pending, route, correlation_id)

        task = self._services.loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return pending

    def _failed(self, pending: Pending, route: Route, correlation_id: int) -> None:
        self._metrics.add(Slot.REQUESTS_FAILED)
        connection, api = pending.connection, route.key.name
        _log.exception(
            "%s v%d from %s failed",
            api,
            route.version,
            connection.host,
            extra={
                "api": api,
                "api_version": route.version,
                "correlation_id": correlation_id,
                "peer": connection.host,
                "client_id": connection.client_id,
            },
        )
        pending.abandon("internal error")

    def _route(self, key: int, version: int) -> Route:
        row = self._rows.get(key)
        if row is None:
            raise WireError(f"unknown API {key}")
        if version not in APIS[row.key].versions:
            if row.key != ApiKey.API_VERSIONS:
                raise WireError(f"{row.key.name} has no version {version}")
            return Route(row, 0)  # not kept: the key would be the version we do not have
        route = self._routes[key, version] = Route(row, version)
        return route

    async def drain(self, timeout_ms: int) -> None:
        """Wait for requests that a worker or the store still holds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_ms / 1000)
        for task in self._tasks:
            task.cancel()


def _ensure_cluster_right(context: RequestContext, right: Right) -> None:
    if not context.may(right.operation, right.resource, CLUSTER_NAME):
        raise RunnelError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, CLUSTER_NAME)


def _error_response(route: Route, error: RunnelError) -> object:
    """A failure of the whole request, where its response has a place for one."""
    if not hasattr(route.response_type, "error_code"):
        raise WireError(f"{route.key.name}: {error}")
    response = route.response_type()
    response.error_code = error.code
    return response
