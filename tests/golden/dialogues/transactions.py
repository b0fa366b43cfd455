"""Transactions in both protocols, their fencing, their refusals, and what the coordinator keeps."""

from collections.abc import Sequence
from typing import Any, Final

from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from runnel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from runnel.wire.messages.describe_transactions import DescribeTransactionsRequest
from runnel.wire.messages.end_txn import EndTxnRequest
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.list_transactions import ListTransactionsRequest
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from runnel.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from runnel.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.golden.talk import Talk, unequal, with_settings

JOURNAL: Final = "__transaction_state"
OLD_PRODUCE, NEW_PRODUCE = 9, 12
Who = tuple[int, int]  # producer id, epoch
# With a refused batch Kafka tells where the log starts, and no words.
QUIET: Final = ("log_start_offset", "error_message")


async def _init(
    talk: Talk, version: int = 5, name: str = "tx", who: Who = (-1, -1), timeout_ms: int = 60_000
) -> Who:
    """Until the transaction before is over."""
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=timeout_ms,
        producer_id=who[0],
        producer_epoch=who[1],
    )
    given = await talk.ask_until(
        request,
        lambda each: (
            each.error_code
            not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        ),
        version,
    )
    return given.producer_id, given.producer_epoch


async def _produce(
    talk: Talk,
    who: Who,
    value: bytes,
    *,
    index: int = 0,
    sequence: int = 0,
    version: int = NEW_PRODUCE,
) -> None:
    batch = encode(
        [Record(b"k", value, -1)],  # a marker of today would begin a new segment
        producer_id=who[0],
        producer_epoch=who[1],
        base_sequence=sequence,
        transactional=True,
    )
    data = PartitionProduceData(index=index, records=bytes(batch))
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(transactional_id="tx", acks=-1, timeout_ms=1000, topic_data=[topic])
    await talk.ask(request, version)


async def _end(talk: Talk, who: Who, version: int = 5, *, commit: bool, name: str = "tx") -> Who:
    """And then until all its markers are written."""
    request = EndTxnRequest(
        transactional_id=name, producer_id=who[0], producer_epoch=who[1], committed=commit
    )
    ended = await talk.ask(request, version)
    if not ended.error_code:
        await _complete(talk, name)
    return ended.producer_id, ended.producer_epoch


async def _complete(talk: Talk, name: str = "tx") -> Any:  # noqa: ANN401  # a described transaction
    return await talk.ask_until(
        DescribeTransactionsRequest(transactional_ids=[name]),
        lambda found: not found.transaction_states[0].transaction_state.startswith("Prepare"),
    )


async def _add(
    talk: Talk, who: Who, indexes: Sequence[int], version: int = 3, *, name: str = "tx"
) -> None:
    topic = AddPartitionsToTxnTopic(name="t", partitions=list(indexes))
    await talk.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=who[0],
            v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=[topic],
        ),
        version,
    )


async def _read(talk: Talk, *, committed: bool, index: int = 0) -> None:
    asked = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
    await talk.ask(
        FetchRequest(
            max_wait_ms=0,
            isolation_level=int(committed),
            topics=[FetchTopic(topic="t", partitions=[asked])],
        ),
        12,
    )


@unequal(*QUIET)
async def transactions_with_epochs_of_their_own(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.topic("t", partitions=2)
    who = await _init(talk)
    await _produce(talk, who, b"one")
    await _produce(talk, who, b"two", sequence=1)
    await _produce(talk, who, b"three", index=1)
    await talk.ask(DescribeTransactionsRequest(transactional_ids=["tx"]))
    await _read(talk, committed=True)
    following = await _end(talk, who, commit=True)
    talk.comment("the answer was lost: the same once more; then the other way round")
    await _end(talk, who, commit=True)
    await _end(talk, who, commit=False)
    talk.comment("a batch that comes too late")
    await _produce(talk, who, b"late", sequence=2)
    await _produce(talk, following, b"four")
    last = await _end(talk, following, commit=False)
    await _end(talk, following, commit=False)
    talk.comment("nothing in it: that can be aborted, and not committed")
    empty = await _end(talk, last, commit=False)
    await _end(talk, empty, commit=True)
    await _read(talk, committed=True)
    await _read(talk, committed=False, index=1)
    await talk.journal(JOURNAL)
    await talk.restart()
    await talk.ask(DescribeTransactionsRequest(transactional_ids=["tx"]))
    await _end(talk, last, commit=False)


@unequal(*QUIET)
async def transactions_before_kip_890(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.topic("t", partitions=2)
    who = await _init(talk, 1)
    await _produce(talk, who, b"not added", version=OLD_PRODUCE)
    for version in range(4):
        await _add(talk, who, [0], version)
    await _produce(talk, who, b"one", version=OLD_PRODUCE)
    await _produce(talk, who, b"not added", index=1, version=11)
    await _add(talk, who, [0, 1])
    await _produce(talk, who, b"two", index=1, version=OLD_PRODUCE)
    for version in (1, 3, 4):
        await _end(talk, who, version, commit=True)
    await _end(talk, who, 3, commit=False)
    await _produce(talk, who, b"late", sequence=1, version=OLD_PRODUCE)
    await _add(talk, who, [0])
    await _produce(talk, who, b"three", sequence=1, version=OLD_PRODUCE)
    await _end(talk, who, 3, commit=False)
    await _end(talk, who, 3, commit=True)
    await _read(talk, committed=True)
    await talk.journal(JOURNAL)


@unequal(*QUIET)
async def a_producer_is_fenced_by_the_next(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.groups_ready()
    await talk.topic("t")
    first = await _init(talk)
    await _produce(talk, first, b"lost")
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    await talk.ask(request, 5)
    second = await _init(talk)
    for version in (1, 2, 4, 5):
        await _end(talk, first, version, commit=True)
    for version in (1, 2, 3):
        await _add(talk, first, [0], version)
    for version in (1, 2, 4):
        offsets = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=first[0], producer_epoch=first[1], group_id="g"
        )
        await talk.ask(offsets, version)
    await _produce(talk, first, b"zombie", sequence=1)
    await _produce(talk, first, b"zombie", sequence=1, version=OLD_PRODUCE)
    for version in (3, 4):
        await talk.ask(
            InitProducerIdRequest(
                transactional_id="tx",
                transaction_timeout_ms=60_000,
                producer_id=first[0],
                producer_epoch=first[1],
            ),
            version,
        )
    await _produce(talk, second, b"kept")
    await _end(talk, second, commit=True)
    await _read(talk, committed=True)
    await talk.journal(JOURNAL)


async def a_producer_goes_on_with_the_next_epoch(talk: Talk) -> None:
    """KIP-360: after an error, with the identity that it has."""
    await talk.transactions_ready()
    await talk.topic("t")
    who = await _init(talk)
    bumped = await _init(talk, who=who)
    talk.comment("the answer was lost")
    assert await _init(talk, who=who) == bumped
    await _init(talk, who=bumped)
    talk.comment("two epochs behind; another id; half an identity")
    await _init(talk, who=who)
    await _init(talk, who=(1007, 0))
    await _init(talk, who=(1007, -1))
    await talk.journal(JOURNAL)


@unequal(*QUIET)
async def requests_that_no_transaction_takes(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.groups_ready()
    await talk.topic("t")
    for name, timeout_ms in (("", 1000), ("tx", 0), ("tx", -1), ("tx", 900_001)):
        await _init(talk, name=name, timeout_ms=timeout_ms)
    await _end(talk, (1007, 0), commit=True, name="nobody")
    await _end(talk, (1007, 0), 4, commit=True, name="")
    await _add(talk, (1007, 0), [0], name="nobody")
    await _add(talk, (1007, 0), [0], name="")
    who = await _init(talk)
    other = (1007, who[1])
    later = (who[0], who[1] + 1)
    for wrong in (other, later):
        for version in (4, 5):
            await _end(talk, wrong, version, commit=True)
        await _add(talk, wrong, [0])
        await _produce(talk, wrong, b"x")
        await _produce(talk, wrong, b"x", version=OLD_PRODUCE)
    for commit in (True, False):
        await _end(talk, who, 4, commit=commit)
    await _end(talk, who, 5, commit=True)
    talk.comment("a partition that is not there spoils it for all")
    await _add(talk, who, [0, 7])
    await talk.ask(ListTransactionsRequest(state_filters=["Empty", "Nonsense"]))
    await talk.ask(ListTransactionsRequest(transactional_id_pattern="t[x"))
    await talk.ask(ListTransactionsRequest(transactional_id_pattern="t"))
    await talk.ask(ListTransactionsRequest(transactional_id_pattern="t.*"))
    await talk.ask(ListTransactionsRequest(producer_id_filters=[other[0]]))


@unequal("producer_id")  # zero: the first id that Runnel gives, and Kafka does not
async def transactions_that_nobody_knows(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.ask(DescribeTransactionsRequest(transactional_ids=["nobody", ""]))
    await talk.ask(ListTransactionsRequest(duration_filter=0), 1)


async def partitions_are_verified_by_brokers(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.topic("t", partitions=2)
    who = await _init(talk)

    async def ask(version: int, who: Who, *, verify: bool, indexes: Sequence[int]) -> None:
        topic = AddPartitionsToTxnTopic(name="t", partitions=list(indexes))
        transaction = AddPartitionsToTxnTransaction(
            transactional_id="tx",
            producer_id=who[0],
            producer_epoch=who[1],
            verify_only=verify,
            topics=[topic],
        )
        await talk.ask(AddPartitionsToTxnRequest(transactions=[transaction]), version)

    for version in (4, 5):
        await ask(version, who, verify=True, indexes=[0])
        await ask(version, who, verify=False, indexes=[0])
        await ask(version, who, verify=True, indexes=[0, 1])
        await ask(version, (who[0], who[1] + 1), verify=True, indexes=[0])
        await ask(version, (1007, who[1]), verify=True, indexes=[0])
    await talk.ask(ListTransactionsRequest(state_filters=["Ongoing"]))
    await talk.journal(JOURNAL)


@unequal(*QUIET)
@with_settings({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
async def a_transaction_takes_too_long(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.topic("t")
    who = await _init(talk, timeout_ms=1000)
    await _produce(talk, who, b"late")
    await talk.wait_ms(3000)
    await _complete(talk)
    await _produce(talk, who, b"later", sequence=1)
    await _read(talk, committed=True)
    await talk.journal(JOURNAL)


@unequal(*QUIET)
async def offsets_in_transactions(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.groups_ready()
    await talk.topic("t", partitions=2)

    async def commit(who: Who, offset: int, version: int, generation: int = -1) -> None:
        partitions = [
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata="m"
            )
            for index in (0, 9)
        ]
        await talk.ask(
            TxnOffsetCommitRequest(
                transactional_id="tx",
                group_id="g",
                producer_id=who[0],
                producer_epoch=who[1],
                generation_id=generation,
                topics=[TxnOffsetCommitRequestTopic(name="t", partitions=partitions)],
            ),
            version,
        )

    async def fetch() -> None:
        for stable in (False, True):
            topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
            group = OffsetFetchRequestGroup(group_id="g", topics=topics)
            await talk.ask(OffsetFetchRequest(groups=[group], require_stable=stable), 8)

    who = await _init(talk)
    for version in (0, 3, 4):
        await commit(who, 1, version)
    await commit(who, 5, 5)
    await commit(who, 6, 5, generation=3)
    await fetch()
    who = await _end(talk, who, commit=True)
    await fetch()
    offsets = AddOffsetsToTxnRequest(
        transactional_id="tx", producer_id=who[0], producer_epoch=who[1], group_id="g"
    )
    await talk.ask(offsets)
    await commit(who, 7, 3)
    await fetch()
    await _end(talk, who, 4, commit=False)
    await fetch()
    await talk.journal("__consumer_offsets")
    await talk.journal(JOURNAL)


@unequal(*QUIET)
async def markers_are_written_by_hand(talk: Talk) -> None:
    await talk.transactions_ready()
    await talk.topic("t")
    who = await _init(talk)
    await _produce(talk, who, b"hangs")

    async def mark(
        epoch: int, version: int = 2, *, commit: bool = False, coordinator: int = 0, level: int = 0
    ) -> None:
        topics = [
            WritableTxnMarkerTopic(name="t", partition_indexes=[0, 3]),
            WritableTxnMarkerTopic(name="nowhere", partition_indexes=[0]),
        ]
        marker = WritableTxnMarker(
            producer_id=who[0],
            producer_epoch=epoch,
            transaction_result=commit,
            coordinator_epoch=coordinator,
            transaction_version=level,
            topics=topics,
        )
        await talk.ask(WriteTxnMarkersRequest(markers=[marker]), version)

    await mark(0, 1)
    await _produce(talk, who, b"again", sequence=1)
    await mark(1, coordinator=3, level=2)
    await mark(0)
    await mark(2, coordinator=2)
    await _read(talk, committed=True)
