"""A bare sink: takes produce requests, answers each with success, and does nothing else.

    python -m bench.sink                 the generator against it, and over the better broker
    python -m bench.sink --serve         prints its port and serves until it is ended

What the generator reaches against it is the most that it could measure of any broker. The sink
counts the bytes of a produce request and does not look at them. It shows one topic and can create
none, so that the loads use that one.
"""

import argparse
import functools
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.model import Target
from bench.trust import SINK, SINK_MEASURES
from runnel.client.raw import Topic
from runnel.wire.apis import APIS, ApiKey, request_header_version, response_header_version
from runnel.wire.compiler import codec_for
from runnel.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from runnel.wire.messages.header import RequestHeader, ResponseHeader
from runnel.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from runnel.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

ROOT = Path(__file__).resolve().parents[1]
TOPIC = Topic("sink", b"sink".ljust(16, b"\1"), 64)
RECEIVE_BYTES = 1024 * 1024
# What the kernel may hold of one connection. Left to itself it grows to many megabytes, out of the
# processor's caches, and the sink becomes slower than a broker: 1.7 GB/s, 3.9 with this.
KERNEL_BYTES = 512 * 1024
KEPT_BYTES_MAX = 64 * 1024  # of a request that is looked at
ANSWERED = (ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.API_VERSIONS)
_HEAD = struct.Struct(">ihh")  # size, key, version
_SIZE = struct.Struct(">i")


class Connection:
    """Cuts what arrives into frames; keeps none of the bytes of a produce request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._head = b""
        self._missing = 0  # of the frame under way
        self._kept: bytearray | None = None  # None for a produce request
        self._produced = b""

    def feed(self, data: memoryview) -> bytes:
        """The replies to the requests that these bytes complete."""
        replies, position = [], 0
        while position < len(data):
            if not self._missing:
                wanted = _HEAD.size - len(self._head)
                self._head += data[position : position + wanted]
                position += wanted
                if len(self._head) < _HEAD.size:
                    break
                self._begin()
            taken = min(self._missing, len(data) - position)
            if self._kept is not None:
                self._kept += data[position : position + taken]
            position += taken
            self._missing -= taken
            if not self._missing:
                kept = self._kept
                replies.append(self._produced if kept is None else answer(kept, self._port))
        return b"".join(replies)

    def _begin(self) -> None:
        size, key, version = _HEAD.unpack(self._head)
        self._missing = size - (_HEAD.size - _SIZE.size)
        if key == ApiKey.PRODUCE:
            self._kept, self._produced = None, produced(version)
        else:
            assert self._missing <= KEPT_BYTES_MAX, f"a request of {size} bytes"
            self._kept = bytearray(self._head[_SIZE.size :])
        self._head = b""


@functools.cache
def produced(version: int) -> bytes:
    """Success for one partition; correlation id 0, as the generator sends."""
    topic = TopicProduceResponse(
        name=TOPIC.name,
        topic_id=TOPIC.topic_id,
        partition_responses=[PartitionProduceResponse()],
    )
    return _framed(ApiKey.PRODUCE, version, 0, ProduceResponse(responses=[topic]))


def answer(request: bytearray, port: int) -> bytes:
    """ApiVersions and Metadata, whatever they ask."""
    _size, key, version = _HEAD.unpack_from(bytes(_SIZE.size) + request)
    header, _ = codec_for(RequestHeader, request_header_version(key, version)).read(request, 0)
    response: object
    if key == ApiKey.API_VERSIONS:
        rows = ((key, APIS[key].versions) for key in ANSWERED)
        response = ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=known[0], max_version=known[-1])
                for key, known in rows
            ]
        )
    else:
        assert key == ApiKey.METADATA, f"the sink does not answer requests of key {key}"
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=0)
            for index in range(TOPIC.partition_count)
        ]
        topic = MetadataResponseTopic(
            name=TOPIC.name, topic_id=TOPIC.topic_id, partitions=partitions
        )
        broker = MetadataResponseBroker(node_id=0, host="127.0.0.1", port=port)
        response = MetadataResponse(brokers=[broker], topics=[topic])
    return _framed(key, version, header.correlation_id, response)


def _framed(key: int, version: int, correlation_id: int, response: object) -> bytes:
    header = codec_for(ResponseHeader, response_header_version(key, version))
    body = header.write(ResponseHeader(correlation_id=correlation_id))
    body += codec_for(type(response), version).write(response)
    return _SIZE.pack(len(body)) + bytes(body)


def serve(listening: socket.socket) -> None:
    """Until the process is ended. A peer that does not read its replies would block it."""
    port = listening.getsockname()[1]
    scratch = memoryview(bytearray(RECEIVE_BYTES))
    poller = select.epoll()
    poller.register(listening, select.EPOLLIN)
    connections: dict[int, tuple[socket.socket, Connection]] = {}
    while True:
        for fd, _event in poller.poll():
            if fd == listening.fileno():
                sock, _ = listening.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                poller.register(sock, select.EPOLLIN)
                connections[sock.fileno()] = sock, Connection(port)
                continue
            sock, connection = connections[fd]
            count = sock.recv_into(scratch)
            if not count:
                poller.unregister(fd)
                del connections[fd]
                sock.close()
            elif replies := connection.feed(scratch[:count]):
                sock.sendall(replies)


@contextmanager
def running() -> Iterator[Target]:
    """A sink in a process of its own."""
    command = [sys.executable, "-m", "bench.sink", "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield Target(SINK, ("127.0.0.1", int(process.stdout.readline())), process.pid)
    finally:
        process.kill()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sink", description=__doc__)
    parser.add_argument("--serve", action="store_true", help="be the sink")
    options, others = parser.parse_known_args()  # all others are those of `bench.run`
    if not options.serve:
        from bench import run  # which imports this module

        words = [word for measure in SINK_MEASURES for word in ("--only", measure)]
        return run.main([*words, *others])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
        print(listening.getsockname()[1], flush=True)
        serve(listening)
    return 0


if __name__ == "__main__":
    sys.exit(main())
