"""How soon a broker answers: on an empty folder, and with a thousand partitions to open again.

Time runs from the start of the process to an answer over the wire. The reopened broker has
answered when Metadata shows a leader for every partition and ListOffsets gave the end of each,
and each end must be what was acknowledged before.
"""

import time

from bench.frames import make_batch, produce_frame
from bench.model import Broker
from bench.pipeline import LoadError
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.wire_client import Topic, WireClient

LATEST = -1
ANSWER_TIMEOUT_S = 60.0
BATCHES_PER_PARTITION = 3
TOPIC = "reopened"


def start_ms(broker: Broker) -> float:
    """From the start of the process to its first Metadata answer, on the broker's own port."""
    started = time.perf_counter()
    broker.spawn()
    with _connect(broker) as client:
        client.call(MetadataRequest(topics=[]), version=12)
        return (time.perf_counter() - started) * 1e3


def _connect(broker: Broker) -> WireClient:
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline and broker.is_running:
        try:
            return WireClient(broker.address, timeout_s=ANSWER_TIMEOUT_S)
        except ConnectionRefusedError:
            time.sleep(0.001)
    raise LoadError(f"the broker does not answer:\n{broker.log}")


def reopen_s(broker: Broker, *, partitions: int, clean: bool) -> float:
    """Fill a topic, end the broker in order or by SIGKILL, and time its return."""
    with WireClient(broker.address) as client:
        topic = client.create_topic(TOPIC, partitions)
        _fill(client, topic)
    if clean:
        broker.stop()
    else:
        broker.kill()
    started = time.perf_counter()
    broker.spawn()
    with _connect(broker) as client:
        _ensure_open(client, partitions)
        seconds = time.perf_counter() - started
        client.delete_topic(TOPIC)
    return seconds


def _fill(client: WireClient, topic: Topic) -> None:
    batch = make_batch(1024, 4)
    for index in range(topic.partition_count):
        frame = produce_frame(client, topic, index, batch, 1)
        client.sock.sendall(frame * BATCHES_PER_PARTITION)
        for _ in range(BATCHES_PER_PARTITION):
            client.receive_frame()


def _ensure_open(client: WireClient, partitions: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    (topic,) = client.call(request).topics
    led = [row for row in topic.partitions if row.leader_id >= 0 and not row.error_code]
    if len(led) != partitions:
        raise LoadError(f"{len(led)} of {partitions} partitions have a leader")
    rows = [
        ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)
    ]
    ends = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=rows)], timeout_ms=30_000
    )
    (answer,) = client.call(ends).topics
    wrong = [row for row in answer.partitions if row.offset != 4 * BATCHES_PER_PARTITION]
    if wrong:
        raise LoadError(f"{len(wrong)} partitions lost records: {wrong[0]}")
