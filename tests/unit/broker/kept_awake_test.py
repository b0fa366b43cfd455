"""Goal: what the listeners tell who keeps the loop awake: of whom, how, and who is gone.

Method: real sockets and a real loop, a broker that has settings and answers whatever comes.
"""

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from random import Random
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from runnel.broker import polling as polling_module
from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.courtesy import Courtesy
from runnel.broker.listener import Listener, Listeners
from runnel.broker.quotas import Quotas, Windows
from runnel.broker.transport import SocketTransport
from runnel.broker.warming import Warming
from runnel.config.settings import load
from runnel.metrics import Metrics
from runnel.wire import hot
from tests.simulated.loop import SimWorkers
from tests.support.stores import ManualClock

FRAME = pack(">ihhi", 8, 0, 0, 0)


def listening(test: Callable[[Listener], Awaitable[None]], **settings: str) -> None:
    asyncio.run(_listening(test, settings))


async def _listening(test: Callable[[Listener], Awaitable[None]], settings: dict[str, str]) -> None:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    given, _ = load(
        {"node.id": "1", "log.dirs": "/data", "listeners": "PLAINTEXT://127.0.0.1:0", **named},
        {},
        None,
    )
    metrics = Metrics()
    broker: Any = SimpleNamespace(
        settings=given,
        buffers=ReceiveBuffers(1 << 20),
        metrics=metrics,
        handle=lambda _connection, frame: [bytearray(frame)],
        wake_few=lambda: None,
        warming=Warming(SimWorkers(Random(0)), metrics, Courtesy(ManualClock(), metrics)),
        quotas=Quotas(Windows()),
        clock=ManualClock(),
    )
    listeners = Listeners(broker)
    listeners.bind()
    listeners.start()
    try:
        await test(listeners._listeners[0])
    finally:
        listeners.close()


async def ask(listener: Listener, source: str = "127.0.0.1") -> socket.socket:
    """A client at that address that has had a reply."""
    loop = asyncio.get_running_loop()
    client = socket.socket()
    client.setblocking(False)
    client.bind((source, 0))
    await loop.sock_connect(client, listener.address)
    await loop.sock_sendall(client, FRAME)
    async with asyncio.timeout(5):
        assert await loop.sock_recv(client, 100) == FRAME[4:]
    return client


@pytest.mark.parametrize(("source", "is_local"), [("127.0.0.1", True), ("127.0.0.2", False)])
def test_a_client_is_of_this_machine_if_it_has_its_address(source: str, *, is_local: bool) -> None:
    """Another address of the loopback stands for another machine."""

    async def test(listener: Listener) -> None:
        client = await ask(listener, source)
        (transport,) = listener._transports
        client.close()
        assert transport.is_local == is_local

    listening(test)


@pytest.mark.skipif(hot.COMPILED, reason="compiled code does not look up what is replaced")
@pytest.mark.parametrize(
    ("settings", "is_kept"),
    [
        ({}, True),
        ({"runnel_busy_poll_awake": "true"}, True),
        ({"runnel_busy_poll_awake": "false"}, False),
        ({"runnel_busy_poll_us": "0"}, False),
    ],
)
def test_processors_are_kept_awake_unless_a_setting_forbids_it(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], *, is_kept: bool
) -> None:
    monkeypatch.setattr(polling_module, "may_spin", lambda: True)  # whatever this machine is

    async def test(listener: Listener) -> None:
        assert (listener._polling._vigil is not None) == is_kept

    listening(test, **settings)


def test_who_polls_keeps_no_transport_that_is_closed() -> None:
    """Nor its connection: the polling lives as long as the broker, and may meet nobody else."""

    async def test(listener: Listener) -> None:
        def living() -> int:
            return sum(
                isinstance(each, SocketTransport) and each._polling is listener._polling
                for each in gc.get_objects()
            )

        clients = [await ask(listener) for _ in range(2)]  # as many as it knows
        assert living() == 2
        for client in clients:
            client.close()
        for _ in range(1000):
            if not listener._transports:
                break
            await asyncio.sleep(0.001)
        gc.collect()
        assert living() == 0

    listening(test)
