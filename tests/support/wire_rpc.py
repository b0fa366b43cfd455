"""The simulator's clients against a real broker: the same calls over a socket."""

import asyncio
import contextlib
from typing import Any

from runnel.client.raw import decode_reply, encode_frame
from runnel.wire.schema import schema_of
from tests.simulated.rpc import LostError


class WireRpc:
    """One connection, made anew when it is next needed after a break."""

    def __init__(self, address: tuple[str, int], name: str) -> None:
        self._address = address
        self._name = name
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, request: object, version: int, *, timeout_s: float = 2.0) -> Any:  # noqa: ANN401  # the class follows from the request
        """Raises LostError; whether the request took effect is unknown then."""
        key = schema_of(type(request)).api_key
        assert key is not None, request
        try:
            async with asyncio.timeout(timeout_s):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(*self._address)
                reader, writer = self._streams
                writer.write(encode_frame(request, version, client_id=self._name))
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise LostError(f"{type(error).__name__}: {error}") from None
        return decode_reply(key, version, frame)[1]

    def close(self) -> None:
        if self._streams is not None:
            with contextlib.suppress(OSError):
                self._streams[1].close()
            self._streams = None
