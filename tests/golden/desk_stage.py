"""Runnel at the desk as the other side of a dialogue."""

from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.golden.talk import Dialogue, Link, hold, settings_of
from tests.support.desk import Desk, at_desk
from tests.support.kafka_tools import ALONE


class _DeskLink:
    """One more connection to the broker of the first desk."""

    def __init__(self, first: Desk) -> None:
        self._desk = Desk(first.broker, first.clock)

    def send(self, frame: bytes) -> None:
        self._desk.put(frame)

    async def next_frame(self) -> bytes:
        return await self._desk.next_frame()

    def has_reply(self) -> bool:
        return self._desk.has_reply

    def close(self) -> None:
        self._desk.close("hung up")


class _DeskStage:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def connect(self) -> Link:
        return _DeskLink(self._desk)

    async def restart(self) -> None:
        await self._desk.restart()

    async def coordinators_ready(self, kind: int) -> None:
        """The first who asks brings the topic into being; it is empty, so loaded at once."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
        response = await self._desk.ask(request)
        assert response.coordinators[0].error_code == 0, response


def replay(dialogue: Dialogue) -> str:
    """What Runnel says to the same requests."""
    said: list[str] = []

    async def test(desk: Desk) -> None:
        said.append(await hold(dialogue, _DeskStage(desk)))

    at_desk(test, {**ALONE, **settings_of(dialogue)})
    return said[0]
