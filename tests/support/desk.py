"""A broker at a desk: built as always, on virtual time, and asked one request after the other.

No network and no faults: for tests of what a handler answers. `ask` gives the response, `None`
where the broker sends no reply, and raises `ClosedError` where it ends the connection.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from runnel.broker import server
from runnel.broker.connection import Connection, Part
from runnel.client.raw import ClosedError, decode_reply, encode_frame
from runnel.config.settings import load
from runnel.types import FileSlice
from runnel.wire.schema import schema_of
from tests.simulated.disk import SimDisk
from tests.simulated.loop import SimClock, SimLoop, SimWorkers
from tests.simulated.store import FakeStore

NEWEST = -1
PATIENCE_S = 100.0

Start = Callable[[], Awaitable[server.Broker]]


class Desk:
    """One connection to a broker that runs on the loop of the test."""

    disk: SimDisk  # of the first desk

    def __init__(
        self,
        broker: server.Broker,
        clock: SimClock,
        start: Start | None = None,
        *,
        client_id: str = "desk",
    ) -> None:
        self.broker = broker
        self._start = start
        self.client_id = client_id
        self.clock = clock
        self.closed_for: str | None = None
        self.reconnect()

    def reconnect(self) -> None:
        self._arrived = bytearray()
        self._changed = asyncio.Event()
        self.closed_for = None
        self.connection = Connection(
            self.broker.handle,
            self,
            self.broker.buffers,
            listener="PLAINTEXT",
            host="desk",
            frame_bytes_max=1 << 27,
            before_replies=self.broker.wake_few,
        )

    async def restart(self) -> None:
        """Stop the broker cleanly and start it anew on what it left."""
        assert self._start is not None, "only the first desk restarts the broker"
        await self.broker.stop()
        self.broker = await self._start()
        self.reconnect()
        await self.broker.groups.wait_loaded()
        await self.broker.transactions.wait_loaded()

    # The outlet of the connection

    def send(self, parts: list[Part]) -> int:
        for part in parts:
            self._arrived += part.read() if isinstance(part, FileSlice) else part
        self._changed.set()
        return 0

    def monotonic(self) -> float:
        return 0.0  # a turn takes no time and never ends

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def resume_reading(self) -> None: ...

    def close(self, reason: str) -> None:
        self.closed_for = reason
        self.connection.closed()
        self._changed.set()

    # Asking

    def put(self, data: bytes) -> None:
        """Bytes as they would come from the socket."""
        while data and self.connection.wants_bytes:
            room = self.connection.receive_into()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.connection.received(count)

    async def ask(self, request: object, version: int = NEWEST) -> Any:  # noqa: ANN401  # its class follows from the request's
        schema = schema_of(type(request))
        assert schema.api_key is not None
        if version == NEWEST:
            version = (
                min(schema.latest_version, 5) if schema.api_key == 22 else schema.latest_version
            )
        self.put(encode_frame(request, version, correlation_id=7, client_id=self.client_id))
        frame = await self.next_frame()
        correlation_id, response = decode_reply(schema.api_key, version, frame)
        assert correlation_id == 7
        return response

    async def next_frame(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if self.closed_for is not None:
                    raise ClosedError(self.closed_for)
                size = int.from_bytes(self._arrived[:4], "big")
                if len(self._arrived) >= 4 + size and self._arrived:
                    frame = bytes(self._arrived[4 : 4 + size])
                    del self._arrived[: 4 + size]
                    return frame
                self._changed.clear()
                await self._changed.wait()

    @property
    def has_reply(self) -> bool:
        return bool(self._arrived)


def at_desk(
    test: Callable[[Desk], Awaitable[None]], settings: dict[str, str] | None = None
) -> None:
    """Run a test against a fresh broker, to its end, without waiting for anything."""
    loop = SimLoop()
    try:
        loop.run_until_complete(_run(test, settings or {}, loop))
    finally:
        loop.close()


async def _run(
    test: Callable[[Desk], Awaitable[None]], settings: dict[str, str], loop: SimLoop
) -> None:
    clock = SimClock(loop)
    disk = SimDisk(1)
    disk.make_dir("/data")
    given, _ = load({"node.id": "1", "log.dirs": "/data", **settings}, {}, None)
    ports = server.Ports(
        clock=clock,
        disk=disk,
        memory_disk=SimDisk(2),
        random=Random(1),
        workers=SimWorkers(Random(2)),
        store=FakeStore(Random(3)),
    )
    async with asyncio.TaskGroup() as tasks:

        async def start() -> server.Broker:
            broker = await server.build(given, ports)
            await broker.start(tasks, given.advertised_listeners)
            return broker

        desk = Desk(await start(), clock, start)
        desk.disk = disk
        await test(desk)
        await desk.broker.stop()
