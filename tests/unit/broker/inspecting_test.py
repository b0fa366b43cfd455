"""Goal: whatever way a produce names its topic, it is looked into if that topic wants it, and only
then.

Method: keyless records, which a compacted topic must refuse, by an idempotent and by a
transactional producer, in the newest version that names topics and the first that has their ids.
"""

from collections.abc import Callable

import pytest

from runnel.broker.handlers import produce as produce_handler
from runnel.broker.inspection import INLINE_BYTES_MAX
from runnel.client.raw import encode_frame
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire import hot
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.asking import PRODUCE_BY_NAME, create
from tests.support.desk import Desk, at_desk
from tests.support.transactions import Sender

PRODUCE_BY_ID = 13
TOPIC = 2
VERSIONS = (PRODUCE_BY_NAME, PRODUCE_BY_ID)


class Producer:
    """Sends one record at a time to the topic `t`, which it names as the version wants it."""

    def __init__(self, sender: Sender, version: int, transactional: bool) -> None:
        self._sender = sender
        self._version = version
        self._transactional = transactional
        self.sequence = 0

    def request(self, topic_id: bytes, key: bytes | None, value: bytes = b"v") -> ProduceRequest:
        records = encode(
            [Record(key, value, self._sender.desk.clock.wall_ms())],
            producer_id=self._sender.producer_id,
            producer_epoch=self._sender.epoch,
            base_sequence=self.sequence,
            transactional=self._transactional,
        )
        data = PartitionProduceData(index=0, records=bytes(records))
        topic = TopicProduceData(partition_data=[data])
        if self._version >= PRODUCE_BY_ID:
            topic.topic_id = topic_id
        else:
            topic.name = "t"
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        if self._transactional:
            request.transactional_id = self._sender.transactional_id
        return request

    async def send(self, topic_id: bytes, key: bytes | None) -> int:
        """The error code."""
        response = await self._sender.desk.ask(self.request(topic_id, key), self._version)
        result: PartitionProduceResponse = response.responses[0].partition_responses[0]
        self.sequence += not result.error_code
        return result.error_code


async def producer_at(desk: Desk, version: int, transactional: bool) -> Producer:
    sender = Sender(desk)
    await sender.init()
    return Producer(sender, version, transactional)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_compacted_topic_wants_keys_of_every_producer(
    version: int, *, transactional: bool
) -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk, cleanup_policy="compact")
        producer = await producer_at(desk, version, transactional)
        assert await producer.send(topic_id, None) == ErrorCode.INVALID_RECORD
        assert desk.broker.partitions.get("t", 0).log.log_end_offset == 0
        assert await producer.send(topic_id, b"k") == 0

    at_desk(test)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_large_batch_is_looked_into_by_a_worker(version: int, *, transactional: bool) -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk, cleanup_policy="compact")
        producer = await producer_at(desk, version, transactional)
        assert await producer.send(topic_id, b"k") == 0  # so that nothing is to be added any more
        for size, is_long in ((10, False), (2 * INLINE_BYTES_MAX, True)):
            request = producer.request(topic_id, b"k", bytes(size))
            desk.put(encode_frame(request, version))
            assert desk.has_reply != is_long, "the loop would be kept from everybody else"
            await desk.next_frame()
            producer.sequence += 1
        assert desk.broker.partitions.get("t", 0).log.log_end_offset == 3

    at_desk(test)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_compacted_from_now_on_wants_keys_from_now_on(version: int) -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        producer = await producer_at(desk, version, transactional=False)
        assert await producer.send(topic_id, None) == 0
        for policy, code in (("compact", ErrorCode.INVALID_RECORD), ("delete", ErrorCode.NONE)):
            config = AlterableConfig(name="cleanup.policy", config_operation=0, value=policy)
            resource = AlterConfigsResource(
                resource_type=TOPIC, resource_name="t", configs=[config]
            )
            await desk.ask(IncrementalAlterConfigsRequest(resources=[resource]))
            assert await producer.send(topic_id, None) == code

    at_desk(test)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_in_place_of_one_that_was_compacted_wants_none(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk, cleanup_policy="compact")
        await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        topic_id = await create(desk)
        producer = await producer_at(desk, version, transactional=False)
        assert await producer.send(topic_id, None) == 0
        assert not desk.broker.partitions.inspected & {"t", topic_id}

    at_desk(test)


@pytest.mark.skipif(hot.COMPILED, reason="compiled code does not look up a replaced function")
@pytest.mark.parametrize("version", VERSIONS)
def test_other_topics_do_not_pay_for_it(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    inspections: Callable[..., object] = produce_handler.inspections

    def noted(*given: object) -> object:
        asked.append(1)
        return inspections(*given)

    async def test(desk: Desk) -> None:
        await create(desk, "other", cleanup_policy="compact")
        topic_id = await create(desk)
        producer = await producer_at(desk, version, transactional=False)
        monkeypatch.setattr(produce_handler, "inspections", noted)
        assert await producer.send(topic_id, None) == 0
        assert not asked, "each of its requests would be gone through once more"

    at_desk(test)
