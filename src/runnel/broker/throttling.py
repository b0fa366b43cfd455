"""Makes clients keep to their quotas, by not hearing them for a while.

The answer leaves first, with its throttle time in it; then nothing more of that connection is
handled until the time is over (R41, KIP-219). Nobody else waits: the connection is muted, a timer
ends that, and no reply is held back.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from runnel.broker.connection import Connection, Mute
from runnel.broker.context import RequestContext
from runnel.broker.quotas import Client, Quotas
from runnel.broker.waiting import Parked
from runnel.metrics import Metrics, Slot
from runnel.ports import Clock
from runnel.types import FileSlice
from runnel.wire.messages.fetch import FetchResponse

PRODUCE_KEY: Final = 0


class Throttling:
    """Owned by dispatch, which asks it only while quotas are active."""

    __slots__ = ("_clock", "_loop", "_metrics", "_quotas")

    def __init__(
        self, quotas: Quotas, clock: Clock, loop: asyncio.AbstractEventLoop, metrics: Metrics
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self._loop = loop
        self._metrics = metrics

    def settle(
        self,
        connection: Connection,
        context: RequestContext,
        api_key: int,
        request_bytes: int,
        worked_s: float,
        response: Any,  # noqa: ANN401  # what a handler gives: a response, Parked, coroutine, None
    ) -> Any:  # noqa: ANN401  # the same, or what will be the same when it is due
        client = self._quotas.client(context.principal, context.client_id)
        charge = Charge(self, connection, client, request_bytes if api_key == PRODUCE_KEY else 0)
        charge.worked_s = worked_s
        if isinstance(response, Parked):
            response.attempt = charge.on_attempt(response.attempt)
            return response
        if isinstance(response, Coroutine):
            return charge.on_finish(response)
        charge.take(response)
        return response

    def mute(self, connection: Connection, throttle_ms: int) -> None:
        until_ms = self._clock.monotonic_ms() + throttle_ms
        if until_ms > connection.throttled_until_ms:
            connection.throttled_until_ms = until_ms
            connection.mute |= Mute.THROTTLE
            self._loop.call_later(throttle_ms / 1000, self._over, connection, until_ms)

    def _over(self, connection: Connection, until_ms: int) -> None:
        """Unless it was throttled again, or is gone."""
        if connection.throttled_until_ms == until_ms and not connection.mute & Mute.CLOSED:
            connection.unmute(Mute.THROTTLE)

    def owed_ms(self, client: Client, produced_bytes: int, worked_s: float, response: Any) -> int:  # noqa: ANN401  # of any API
        """Put it on the client's account; how long that makes it wait."""
        now_ms = self._clock.monotonic_ms()
        windows = self._quotas.windows
        owed_ms = 0
        if client.produce is not None and produced_bytes:
            owed_ms = client.produce.spend(produced_bytes, now_ms)
        if client.fetch is not None and isinstance(response, FetchResponse):
            owed_ms = client.fetch.spend(_record_bytes(response), now_ms)
        owed_ms = min(owed_ms, windows.throttle_max_ms)
        if client.request is not None:
            waits_ms = client.request.spend(worked_s, now_ms)
            owed_ms = max(owed_ms, min(waits_ms, windows.size_s * 1000))
        if owed_ms:
            self._metrics.add(Slot.REQUESTS_THROTTLED)
        return owed_ms


class Charge:
    """What one request costs its client, put on the account when it is answered."""

    __slots__ = ("_client", "_connection", "_produced_bytes", "_throttling", "worked_s")

    def __init__(
        self, throttling: Throttling, connection: Connection, client: Client, produced_bytes: int
    ) -> None:
        self._throttling = throttling
        self._connection = connection
        self._client = client
        self._produced_bytes = produced_bytes
        self.worked_s = 0.0

    def take(self, response: Any) -> None:  # noqa: ANN401  # of any API; None: no reply is wanted
        throttling = self._throttling
        owed_ms = throttling.owed_ms(self._client, self._produced_bytes, self.worked_s, response)
        if response is not None and hasattr(response, "throttle_time_ms"):
            # What creates and deletes has set its own.
            owed_ms = max(owed_ms, response.throttle_time_ms)
            response.throttle_time_ms = owed_ms
        if owed_ms:
            throttling.mute(self._connection, owed_ms)

    def on_attempt(self, attempt: Callable[[bool], Any]) -> Callable[[bool], Any]:
        def charged(final: bool) -> Any:  # noqa: ANN401  # as `attempt`
            began_s = self._connection.monotonic()
            response = attempt(final)
            self.worked_s += self._connection.monotonic() - began_s
            if response is not None:
                self.take(response)
            return response

        return charged

    async def on_finish(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401  # as `work`
        response = await work
        if isinstance(response, Parked):
            response.attempt = self.on_attempt(response.attempt)
        else:
            self.take(response)
        return response


def _record_bytes(response: FetchResponse) -> int:
    total = 0
    for topic in response.responses:
        for partition in topic.partitions:
            records = partition.records
            if records is not None:
                total += records.size if isinstance(records, FileSlice) else len(records)
    return total
