"""Requests and replies over the simulated network, with nothing hidden: no retries, no routing.

A request ends with its response, or with `LostError`: the connection broke or nothing came in
time, and whether it took effect is unknown. Replies must come in the order of the requests.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from runnel.client.raw import decode_reply, encode_frame
from runnel.wire.schema import schema_of
from tests.simulated.network import Link, Network


class LostError(Exception):
    """No reply came. The request may have taken effect, or may yet."""


@dataclass(slots=True)
class _Outstanding:
    correlation_id: int
    key: int
    version: int
    reply: "asyncio.Future[Any]"  # the response, or None if it will not come


class Rpc:
    """One client's connection, made anew when it is next needed after a break."""

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self._name = name
        self._link: Link | None = None
        self._outstanding: deque[_Outstanding] = deque()
        self._arrived = bytearray()
        self._correlation_id = 0

    async def connect(self) -> None:
        """Raises LostError if no broker listens; nothing has been sent then."""
        if self._link is not None and self._link.is_open:
            return
        try:
            link = await self._network.connect(self._name)
        except ConnectionError as error:
            raise LostError(str(error)) from None
        self._link = link
        self._arrived.clear()
        link.receive = self._receive
        link.ended = self._lose

    def submit(self, request: object, version: int) -> "asyncio.Future[Any]":
        """Send without waiting, as a producer does that has several requests under way."""
        assert self._link is not None
        key = schema_of(type(request)).api_key
        assert key is not None, request
        self._correlation_id += 1
        future = asyncio.get_running_loop().create_future()
        self._outstanding.append(_Outstanding(self._correlation_id, key, version, future))
        self._link.send(
            encode_frame(
                request, version, correlation_id=self._correlation_id, client_id=self._name
            )
        )
        if not self._link.is_open:
            self._lose()
        return future

    async def wait(self, reply: "asyncio.Future[Any]", timeout_s: float) -> Any:  # noqa: ANN401  # the class follows from the request
        """The response. A reply that does not come in time costs the connection."""
        await asyncio.wait([reply], timeout=timeout_s)
        if not reply.done():
            self.close()
        response = reply.result()
        if response is None:
            raise LostError("no reply")
        return response

    async def call(self, request: object, version: int, *, timeout_s: float = 2.0) -> Any:  # noqa: ANN401  # as above
        await self.connect()
        return await self.wait(self.submit(request, version), timeout_s)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._lose()

    def _receive(self, data: bytes) -> None:
        self._arrived += data
        while len(self._arrived) >= 4:
            size = int.from_bytes(self._arrived[:4], "big")
            if len(self._arrived) < 4 + size:
                return
            frame = bytes(self._arrived[4 : 4 + size])
            del self._arrived[: 4 + size]
            asked = self._outstanding.popleft()
            correlation_id, response = decode_reply(asked.key, asked.version, frame)
            assert correlation_id == asked.correlation_id, "a reply out of order"
            asked.reply.set_result(response)

    def _lose(self) -> None:
        self._link = None
        outstanding, self._outstanding = self._outstanding, deque()
        for asked in outstanding:
            asked.reply.set_result(None)
