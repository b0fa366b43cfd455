"""A small blocking client that speaks the wire: for tools, tests and benchmarks, not for users.

It sends what it is told, also what no correct client would send, and waits for one reply at a
time. Versions are negotiated with ApiVersions v0, which every broker answers.
"""

import socket
import struct
from types import TracebackType
from typing import Any, NamedTuple, Self

from runnel.ports import Readable
from runnel.wire.apis import (
    APIS,
    ApiKey,
    request_header_version,
    response_header_version,
    response_type,
)
from runnel.wire.compiler import codec_for
from runnel.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.header import RequestHeader, ResponseHeader
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from runnel.wire.schema import schema_of

_SIZE = struct.Struct(">i")
REPLY_BYTES_MAX = 256 * 1024 * 1024


Address = tuple[str, int]


class ClosedError(Exception):
    """The broker ended the connection."""


class NotKafkaError(ClosedError):
    """What came back is no reply of Kafka's protocol; perhaps the port speaks TLS or HTTP."""


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int


def encode_frame(
    request: object, version: int, *, correlation_id: int = 0, client_id: str | None = "raw"
) -> bytes:
    """A request as it goes over the wire, its size first."""
    key = schema_of(type(request)).api_key
    assert key is not None, request
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    codec = codec_for(RequestHeader, request_header_version(key, version))
    body = codec.write(header) + codec_for(type(request), version).write(request)
    return _SIZE.pack(len(body)) + body


def decode_reply(key: int, version: int, frame: Readable) -> tuple[int, Any]:
    """Correlation id and response of a frame without its size."""
    header_codec = codec_for(ResponseHeader, response_header_version(key, version))
    header, position = header_codec.read(frame, 0)
    response, end = codec_for(response_type(key), version).read(frame, position)
    assert end == len(frame), f"{len(frame) - end} bytes after the response"
    return header.correlation_id, response


class WireClient:
    """One connection. Use it as a context manager."""

    def __init__(
        self, address: Address, *, timeout_s: float = 20.0, client_id: str | None = "raw"
    ) -> None:
        self.sock = socket.create_connection(address, timeout=timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._versions: dict[int, range] = {}
        self._correlation_id = 0
        self._client_id = client_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    def call(self, request: object, *, version: int | None = None) -> Any:  # noqa: ANN401  # its class follows from that of the request
        """Send a request and wait for its response. Raises ClosedError."""
        key = schema_of(type(request)).api_key
        assert key is not None, request
        if version is None:
            version = self.version_of(key)
        self._correlation_id += 1
        self.send(request, version, self._correlation_id)
        correlation_id, response = decode_reply(key, version, self.receive_frame())
        assert correlation_id == self._correlation_id, "a reply out of order"
        return response

    def send(self, request: object, version: int, correlation_id: int) -> None:
        """Without waiting for a response: there is none to a produce request with acks 0."""
        self.sock.sendall(
            encode_frame(request, version, correlation_id=correlation_id, client_id=self._client_id)
        )

    def receive_frame(self) -> bytes:
        """The next reply without its size. Raises ClosedError."""
        return bytes(self._receive(self._receive_size()))

    def receive_frame_into(self, memory: bytearray) -> tuple[bytearray, memoryview]:
        """The next reply in this memory, or in new memory if that is too small, and its view.

        For those who read much: memory that was written before costs no page faults.
        """
        size = self._receive_size()
        if size > len(memory):
            memory = bytearray(size)
        view = memoryview(memory)[:size]
        self._receive_into(view)
        return memory, view

    def is_closed(self) -> bool:
        """Waits until the broker sends something or ends the connection: true if it ended."""
        try:
            return self.sock.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            return True

    def _receive_size(self) -> int:
        (size,) = _SIZE.unpack(self._receive(_SIZE.size))
        if not 0 <= size <= REPLY_BYTES_MAX:
            raise NotKafkaError(f"a reply of {size} bytes")
        return int(size)

    def _receive(self, size: int) -> bytearray:
        out = bytearray(size)
        self._receive_into(memoryview(out))
        return out

    def _receive_into(self, view: memoryview) -> None:
        done, size = 0, len(view)
        while done < size:
            try:
                count = self.sock.recv_into(view[done:])
            except ConnectionError as error:
                raise ClosedError(f"{error}") from None
            if count == 0:
                raise ClosedError(f"after {done} of {size} bytes")
            done += count

    @property
    def versions(self) -> dict[int, range]:
        """What the broker offers, by API key."""
        if not self._versions:
            response: ApiVersionsResponse = self.call(ApiVersionsRequest(), version=0)
            self._versions = {
                row.api_key: range(row.min_version, row.max_version + 1)
                for row in response.api_keys
            }
        return self._versions

    def version_of(self, key: int) -> int:
        """The newest version that both sides know."""
        ours, theirs = APIS[key].versions, self.versions[key]
        newest = min(ours[-1], theirs[-1])
        assert newest >= max(ours[0], theirs[0]), f"no common version of {ApiKey(key).name}"
        return newest

    # The few calls that every test and benchmark makes.

    def create_topic(
        self, name: str, partition_count: int, configs: dict[str, str] | None = None
    ) -> Topic:
        rows = [CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()]
        topic = CreatableTopic(
            name=name, num_partitions=partition_count, replication_factor=1, configs=rows
        )
        (result,) = self.call(CreateTopicsRequest(topics=[topic])).topics
        assert result.error_code == 0, f"{name}: {result.error_code} {result.error_message}"
        return self.topic(name)

    def topic(self, name: str) -> Topic:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        (found,) = self.call(request).topics
        assert found.error_code == 0, f"{name}: {found.error_code}"
        return Topic(name, found.topic_id, len(found.partitions))

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=30_000
        )
        if self.version_of(ApiKey.DELETE_TOPICS) < 6:
            request.topics = []
        (result,) = self.call(request).responses
        assert result.error_code == 0, f"{name}: {result.error_code}"
