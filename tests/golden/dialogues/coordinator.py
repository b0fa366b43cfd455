"""Finding coordinators; producer ids without transactions."""

from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.golden.talk import Talk, unequal


async def coordinators_are_found(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.transactions_ready()
    for version in range(4):
        await talk.ask(FindCoordinatorRequest(key="orders"), version)
    for version in (4, 5, 6):
        await talk.ask(FindCoordinatorRequest(coordinator_keys=["a", "b", ""]), version)
        await talk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), version)
    await talk.ask(FindCoordinatorRequest(coordinator_keys=[]))


@unequal("error_message")  # Kafka's is the same for every bad request
async def coordinators_of_no_kind(talk: Talk) -> None:
    await talk.ask(FindCoordinatorRequest(key_type=9, coordinator_keys=["a"]))


# Of a repeated batch Kafka tells the time in the batch, as if the log had given it; with a refusal
# it tells where the log starts, and no words. No client looks at either.
@unequal("log_append_time_ms", "log_start_offset", "error_message")
async def an_idempotent_producer_repeats_itself(talk: Talk) -> None:
    await talk.topic("t")
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    await talk.ask_until(request, lambda given: given.error_code == 0)
    for version in (0, 4, 5):
        given = await talk.ask(request, version)
    for sequence in (0, 2, 0, 3, 9):
        batch = encode(
            [Record(b"k", b"%d" % sequence, 1_700_000_000_000), Record(None, b"x", -1)],
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=0, records=bytes(batch))
        topic = TopicProduceData(name="t", partition_data=[data])
        await talk.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 12)
