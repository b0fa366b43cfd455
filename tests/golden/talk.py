"""A dialogue with a broker over several connections, written down as it goes.

The broker stands behind a `Stage`: a real Kafka (`kafka_stage.py`) or Runnel at the desk
(`desk_stage.py`). Both see the same frames in the same order.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from runnel.client.raw import ClosedError, decode_reply, encode_frame
from runnel.native.records import decode
from runnel.wire.apis import APIS
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.schema import schema_of
from tests.golden.journal import journal_lines
from tests.golden.wording import Wording

CLIENT_ID: Final = "golden"
SETTLE_S: Final = 0.1  # until a broker has surely seen what was sent to it
REPLY_TIMEOUT_S: Final = 30.0
FETCH_VERSION: Final = 12  # the last that names topics

Dialogue = Callable[["Talk"], Awaitable[None]]
D = TypeVar("D", bound=Dialogue)


class Link(Protocol):
    """One connection. `next_frame` raises ClosedError."""

    def send(self, frame: bytes) -> None: ...
    async def next_frame(self) -> bytes: ...
    def has_reply(self) -> bool: ...
    def close(self) -> None: ...


class Stage(Protocol):
    """A broker."""

    async def connect(self) -> Link: ...
    async def restart(self) -> None: ...
    async def coordinators_ready(self, kind: int) -> None: ...


@dataclass
class _Line:
    link: Link
    outstanding: deque[tuple[int, int]] = field(default_factory=deque)  # API keys and versions


class Talk:
    """Owned by one run of one dialogue."""

    def __init__(self, stage: Stage, wording: Wording) -> None:
        self._stage = stage
        self._wording = wording
        self._lines: dict[str, _Line] = {}
        self.text: list[str] = []

    # What a dialogue says

    async def ask(self, request: object, version: int | None = None, *, on: str = "A") -> Any:  # noqa: ANN401  # its class follows from the request's
        """Send and wait for the reply. By default in the newest version that Kafka serves."""
        await self._send(request, version, on)
        return await self.expect(on=on)

    async def send(self, request: object, version: int | None = None, *, on: str = "A") -> None:
        """Without waiting for the reply; the broker has dealt with it before anybody goes on."""
        await self._send(request, version, on)
        await asyncio.sleep(SETTLE_S)

    async def expect(self, *, on: str = "A") -> Any:  # noqa: ANN401  # as above
        """The reply to the oldest request without one on that connection; None if it is closed."""
        line = self._lines[on]
        key, version = line.outstanding.popleft()
        try:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                frame = await line.link.next_frame()
        except ClosedError:
            del self._lines[on]
            self._write(f"{on} - closed by the broker", [])
            return None
        _, response = decode_reply(key, version, frame)
        self._write(
            f"{on} < {APIS[key].name} v{version}", self._wording.response(response, version)
        )
        return response

    async def quiet(self, *, on: str = "A") -> None:
        """Nothing has come back on that connection."""
        await asyncio.sleep(SETTLE_S)
        silence = "a reply is there" if self._lines[on].link.has_reply() else "no reply yet"
        self._write(f"{on} - {silence}", [])

    async def ask_until(
        self,
        request: object,
        is_ready: Callable[[Any], bool],
        version: int | None = None,
        *,
        on: str = "A",
    ) -> Any:  # noqa: ANN401  # as above
        """Ask again and again, 50 ms apart; only the last round is written down."""
        while True:
            written = len(self.text)
            response = await self.ask(request, version, on=on)
            if is_ready(response):
                return response
            del self.text[written:]
            await asyncio.sleep(0.05)

    async def wait_ms(self, duration_ms: int) -> None:
        self._write(f"- {duration_ms} ms pass", [])
        await asyncio.sleep(duration_ms / 1000)

    async def hang_up(self, *, on: str = "A") -> None:
        """Close a connection; the next request on it opens a new one."""
        self._lines.pop(on).link.close()
        self._write(f"{on} - closed by the client", [])
        await asyncio.sleep(SETTLE_S)

    async def restart(self) -> None:
        """The broker stops cleanly and starts again; all connections are new."""
        for line in self._lines.values():
            line.link.close()
        self._lines.clear()
        await self._stage.restart()
        self._write("- the broker restarts", [])

    # What it needs beforehand

    async def groups_ready(self) -> None:
        await self._stage.coordinators_ready(0)

    async def transactions_ready(self) -> None:
        await self._stage.coordinators_ready(1)

    async def topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic; its id."""
        named = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=named
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        (created,) = (await self._unwritten(request, 7)).topics
        assert created.error_code == 0, created
        self._wording.name_topic(created.topic_id, name)
        self._write(f"- topic {name} with {partitions} partitions", [])
        await asyncio.sleep(SETTLE_S)
        topic_id: bytes = created.topic_id
        return topic_id

    async def journal(self, topic: str, partition: int = 0) -> None:
        """Write down what coordinators wrote: every record of an internal topic."""
        asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[asked])]
        )
        response = await self._unwritten(request, FETCH_VERSION)
        records = response.responses[0].partitions[0].records
        columns = decode(records or b"", max_records=100_000, max_bytes=1 << 24)
        self._write(f"- {topic} holds", journal_lines(self._wording, columns, topic))

    def comment(self, text: str) -> None:
        self._write(f"# {text}", [])

    async def _send(self, request: object, version: int | None, on: str) -> None:
        key = schema_of(type(request)).api_key
        assert key is not None, request
        if version is None:
            version = APIS[key].versions[-1]
        if on not in self._lines:
            self._lines[on] = _Line(await self._stage.connect())
        line = self._lines[on]
        self._write(f"{on} > {APIS[key].name} v{version}", self._wording.request(request, version))
        line.outstanding.append((key, version))
        line.link.send(encode_frame(request, version, correlation_id=1, client_id=CLIENT_ID))

    async def _unwritten(self, request: object, version: int) -> Any:  # noqa: ANN401  # as above
        link = await self._stage.connect()
        key = schema_of(type(request)).api_key
        assert key is not None
        link.send(encode_frame(request, version, correlation_id=1, client_id=CLIENT_ID))
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            _, response = decode_reply(key, version, await link.next_frame())
        link.close()
        return response

    def _write(self, head: str, lines: list[str]) -> None:
        self.text.append(head)
        self.text += [f"    {line}" for line in lines]


def with_settings(settings: Mapping[str, str]) -> Callable[[D], D]:
    """Broker settings of one dialogue."""

    def mark(dialogue: D) -> D:
        dialogue.__dict__["settings"] = dict(settings)
        return dialogue

    return mark


def unequal(*fields: str) -> Callable[[D], D]:
    """Fields whose values are not compared."""

    def mark(dialogue: D) -> D:
        dialogue.__dict__["unequal"] = fields
        return dialogue

    return mark


def settings_of(dialogue: Dialogue) -> dict[str, str]:
    return dict(dialogue.__dict__.get("settings", {}))


async def hold(dialogue: Dialogue, stage: Stage) -> str:
    """The dialogue as text."""
    talk = Talk(stage, Wording(dialogue.__dict__.get("unequal", ())))
    await dialogue(talk)
    return "\n".join(talk.text) + "\n"
