"""Malformed frames without end, derived from valid requests of every API of the data path.

A frame is cut short at any byte, has a hostile number where a length may stand, has any one bit
flipped, or all three. Some come out valid by chance: a broker may answer them.
"""

import random
import struct
from collections.abc import Iterator, Sequence

from runnel.client.raw import encode_frame
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.describe_cluster import DescribeClusterRequest
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from runnel.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.hostile_frames import make_batch, produce, sized

HOSTILE_NUMBERS = (
    *(struct.pack(">h", number) for number in (-(2**15), -2, -1, 0, 2**15 - 1)),
    *(struct.pack(">i", number) for number in (-(2**31), -2, -1, 0, 2**31 - 1)),
    *(struct.pack(">B", number) for number in (0, 1, 0x7F, 0x80, 0xFF)),
    b"\xff\xff\xff\xff\x0f",  # the largest varint
    b"\xff\xff\xff\xff\xff\xff",  # one that does not end
)


def valid_requests(topic: str) -> list[bytes]:
    """None of them does lasting harm when it is repeated."""
    fetched = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    listed = ListOffsetsPartition(partition_index=0, timestamp=-1)
    created = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    deleted = DeleteRecordsPartition(partition_index=0, offset=0)
    epoch = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    software = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    return [
        produce(topic, make_batch()),
        produce(topic, make_batch(), acks=-1),
        encode_frame(
            FetchRequest(max_wait_ms=1, topics=[FetchTopic(topic=topic, partitions=[fetched])]), 12
        ),
        encode_frame(
            ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[listed])]), 7
        ),
        encode_frame(named, 8),
        encode_frame(named, 12),
        encode_frame(software, 3),
        encode_frame(InitProducerIdRequest(transaction_timeout_ms=1000), 4),
        encode_frame(CreateTopicsRequest(topics=[created], validate_only=True), 7),
        encode_frame(
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[deleted])], timeout_ms=1
            ),
            2,
        ),
        encode_frame(
            OffsetForLeaderEpochRequest(
                topics=[OffsetForLeaderTopic(topic=topic, partitions=[epoch])]
            ),
            4,
        ),
        encode_frame(DescribeClusterRequest(), 1),
    ]


def storm(requests: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """`count` frames; the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        body = bytearray(chance.choice(requests)[4:])
        kind = chance.choice(("number", "flip", "cut", "all"))
        if kind in ("number", "all"):
            number = chance.choice(HOSTILE_NUMBERS)
            position = chance.randrange(8, len(body))
            body[position : position + len(number)] = number
        if kind in ("flip", "all"):
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        if kind in ("cut", "all"):
            del body[chance.randrange(len(body)) :]
        yield sized(bytes(body))
