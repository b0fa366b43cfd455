"""A real Kafka as the other side of a dialogue."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from runnel.client.raw import ClosedError, decode_reply, encode_frame
from runnel.errors import ErrorCode
from runnel.wire.messages.describe_transactions import DescribeTransactionsRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from runnel.wire.schema import schema_of
from tests.golden.talk import Dialogue, Link, hold, settings_of
from tests.support.kafka_tools import KafkaBroker

NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
ASK_AGAIN_S: Final = 0.05


class _KafkaLink:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                self._frames.put_nowait(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._frames.put_nowait(None)

    def send(self, frame: bytes) -> None:
        self._writer.write(frame)

    async def next_frame(self) -> bytes:
        frame = await self._frames.get()
        if frame is None:
            raise ClosedError("by Kafka")
        return frame

    def has_reply(self) -> bool:
        return not self._frames.empty()

    def close(self) -> None:
        self._reading.cancel()
        self._writer.close()


class _KafkaStage:
    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._kinds: list[int] = []  # of coordinators that the dialogue needs

    async def connect(self) -> Link:
        host, _, port = self._broker.bootstrap.rpartition(":")
        return _KafkaLink(*await asyncio.open_connection(host, int(port)))

    async def restart(self) -> None:
        await asyncio.to_thread(self._broker.stop)
        await asyncio.to_thread(self._broker.start)
        for kind in self._kinds:
            await self.coordinators_ready(kind)

    async def coordinators_ready(self, kind: int) -> None:
        self._kinds = [*(known for known in self._kinds if known != kind), kind]
        find = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
        await self._ask_until_ready(find, 6)
        if kind == 0:
            group = OffsetFetchRequestGroup(group_id="any", topics=None)
            await self._ask_until_ready(OffsetFetchRequest(groups=[group]), 8)
        else:
            await self._ask_until_ready(DescribeTransactionsRequest(transactional_ids=["any"]), 0)
            await self._ask_until_ready(InitProducerIdRequest(transactional_id=None), 4)

    async def _ask_until_ready(self, request: object, version: int) -> None:
        key = schema_of(type(request)).api_key
        assert key is not None
        link = await self.connect()
        while True:
            link.send(encode_frame(request, version, correlation_id=1, client_id="ready"))
            _, response = decode_reply(key, version, await link.next_frame())
            if _error_of(response) not in NOT_YET:
                break
            await asyncio.sleep(ASK_AGAIN_S)
        link.close()


def _error_of(response: Any) -> int:  # noqa: ANN401  # one of four
    for name in ("coordinators", "groups", "transaction_states"):
        if hasattr(response, name):
            code: int = getattr(response, name)[0].error_code
            return code
    return int(response.error_code)


def ask_kafka(dialogue: Dialogue) -> str:
    """What a fresh Kafka says."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        broker = KafkaBroker(Path(folder) / "data", settings=settings_of(dialogue))
        with broker:
            return asyncio.run(hold(dialogue, _KafkaStage(broker)))
