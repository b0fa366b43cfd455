"""Offset commits as fast as a broker takes them: many groups, pre-encoded, over many connections.

A commit is that of a consumer without members beside it, for one partition; each connection commits
for groups of its own in turn. Kafka answers the requests of a connection one after the other, so
what counts is how many connections there are.
"""

import itertools
import time
from collections.abc import Sequence
from typing import NamedTuple

from bench.coordination import PASSING, POLL_S, TIMEOUT_S, await_coordinator, delete_groups
from runnel.bench.frames import ReplyShape, reply_shape
from runnel.bench.load import Result, measure
from runnel.bench.pipeline import Chunk, EqualReplies, LoadError, Pipeline, until
from runnel.bench.topics import passing_topic, unique_name
from runnel.client.coordinators import KeyType
from runnel.client.raw import Address, Topic, WireClient, encode_frame
from runnel.errors import ErrorCode
from runnel.wire.apis import ApiKey, response_header_version
from runnel.wire.compiler import codec_for
from runnel.wire.messages.header import ResponseHeader
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

VERSION = 9  # by the topic's name, as most clients do
METADATA = ""


class Commits(NamedTuple):
    """Every request commits one partition of one group."""

    groups: int = 1000
    connections: int = 100
    in_flight: int = 5


def commit_offsets(
    address: Address, load: Commits, *, seconds: float, pid: int | None = None
) -> Result:
    """For so long. The groups are there before the clock starts, and gone afterwards."""
    prefix = unique_name("commits")
    groups = [f"{prefix}-{number}" for number in range(load.groups)]
    with (
        WireClient(address) as client,
        passing_topic(client, "commits", 1) as topic,
    ):
        await_coordinator(client, KeyType.GROUP, groups[0])
        try:
            for group in groups:
                await_commit(client, group, topic)
            pipelines = _committers(address, load, topic, groups, seconds)
            return measure(pipelines, 0, pid)
        finally:
            delete_groups(client, groups)


def await_commit(client: WireClient, group: str, topic: Topic, offset: int = 0) -> None:
    """Returns when it is done; a coordinator may have to load first. Raises LoadError."""
    deadline, request = time.monotonic() + TIMEOUT_S, commit_request(group, topic, offset)
    while time.monotonic() < deadline:
        (answer,) = client.call(request, version=VERSION).topics
        (code,) = (row.error_code for row in answer.partitions)
        if not code:
            return
        if code not in PASSING:
            break
        time.sleep(POLL_S)
    raise LoadError(f"{group} cannot commit: {ErrorCode(code).name}")


def commit_request(group: str, topic: Topic, offset: int) -> OffsetCommitRequest:
    row = OffsetCommitRequestPartition(committed_offset=offset, committed_metadata=METADATA)
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=topic.name, partitions=[row])]
    )


def commit_reply_shape(topic: Topic) -> ReplyShape:
    header = codec_for(ResponseHeader, response_header_version(ApiKey.OFFSET_COMMIT, VERSION))
    body = codec_for(OffsetCommitResponse, VERSION)

    def reply(code: int) -> bytearray:
        row = OffsetCommitResponsePartition(error_code=code)
        rows = [OffsetCommitResponseTopic(name=topic.name, partitions=[row])]
        return header.write(ResponseHeader()) + body.write(OffsetCommitResponse(topics=rows))

    return reply_shape(reply)


def _committers(
    address: Address, load: Commits, topic: Topic, groups: Sequence[str], seconds: float
) -> list[Pipeline]:
    shape = commit_reply_shape(topic)
    pipelines = []
    for number in range(load.connections):
        chunks = [
            Chunk(memoryview(encode_frame(commit_request(group, topic, offset), VERSION)), 1)
            for offset, group in enumerate(groups[number :: load.connections], start=1)
        ]
        endless = until(seconds, itertools.cycle(chunks))
        pipelines.append(Pipeline(address, endless, EqualReplies(shape), load.in_flight))
    return pipelines
