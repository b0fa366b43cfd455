"""FindCoordinator: the first who asks brings the internal topic into being."""

import asyncio
import subprocess
import sys

import pytest

from runnel.broker.coordinators import java_hash
from runnel.errors import ErrorCode
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.desk import Desk, at_desk


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_a_group_has_a_coordinator_at_once(version: int) -> None:
    async def test(desk: Desk) -> None:
        request = FindCoordinatorRequest(key="orders")
        if version >= 4:
            request = FindCoordinatorRequest(coordinator_keys=["orders", "clicks"])
        response = await desk.ask(request, version)
        found = response.coordinators if version >= 4 else [response]
        for coordinator in found:
            assert coordinator.error_code == 0, coordinator
            assert (coordinator.node_id, coordinator.port) == (1, 9092)
        topic = desk.broker.groups.topic
        assert topic == "__consumer_offsets"
        assert desk.broker.groups.shard_of("orders").is_loaded

    at_desk(test)


def test_an_unknown_kind_of_key_is_refused() -> None:
    async def test(desk: Desk) -> None:
        response = await desk.ask(FindCoordinatorRequest(key_type=7, coordinator_keys=["x"]))
        assert response.coordinators[0].error_code == ErrorCode.INVALID_REQUEST

    at_desk(test)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("orders", 1008770331),
        ("polygenelubricants", 0),
        ("\U0001f600", 1772899),
    ],
)
def test_places_are_those_of_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_who_asks_while_the_topic_is_created_waits_for_it_too() -> None:
    async def test(desk: Desk) -> None:
        async def ask(asker: Desk, after: int) -> None:
            for _ in range(after):
                await asyncio.sleep(0)
            response = await asker.ask(FindCoordinatorRequest(coordinator_keys=["orders"]))
            assert response.coordinators[0].error_code == 0
            desk.broker.groups.shard_of("orders")

        askers = [Desk(desk.broker, desk.clock) for _ in range(60)]
        await asyncio.gather(*(ask(asker, number) for number, asker in enumerate(askers)))

    at_desk(test)


IMPORTS = """
import sys, threading
from runnel.client.raw import WireClient
from runnel.testing import RunnelBroker
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest

class Finder:
    threads = {}
    def find_spec(self, name, path, target=None):
        self.threads[name] = threading.current_thread()

with RunnelBroker(in_process=True) as broker:
    sys.meta_path.insert(0, Finder())
    host, port = broker.bootstrap_servers.split(":")
    with WireClient((host, int(port))) as client:
        for kind in (0, 1):
            client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]))
    serving = broker._runner._thread
for name in ("groups.machine", "transactions.machine"):
    assert Finder.threads["runnel.coordinator." + name] not in (serving, threading.main_thread())
"""


def test_others_do_not_wait_for_the_code_that_the_first_coordinator_needs() -> None:
    """It takes a tenth of a second to import, which a worker does."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
