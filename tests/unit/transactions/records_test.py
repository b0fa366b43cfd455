"""A transaction and its record say the same, so that live and replayed state cannot differ."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from runnel.coordinator.records import decode_record, encode_record
from runnel.coordinator.transactions.transaction import (
    KINDS,
    NO_EPOCH,
    State,
    Transaction,
    record_of,
    tombstone,
    transaction_of,
)
from runnel.types import TopicPartition

INT64 = st.integers(-1, 2**62)
INT16 = st.integers(-1, 2**15 - 1)
PARTITIONS = st.frozensets(
    st.builds(TopicPartition, st.text(min_size=1, max_size=5), st.integers(0, 100)), max_size=20
)
TRANSACTIONS = st.builds(
    Transaction,
    st.text(max_size=50),
    INT64,
    INT16,
    st.integers(0, 2**31 - 1),
    st.sampled_from(State),
    PARTITIONS,
    INT64,
    INT64,
    INT64,
    INT64,
    st.integers(0, 2),
)


@given(TRANSACTIONS)
def test_what_is_written_is_what_is_replayed(transaction: Transaction) -> None:
    if transaction.state is State.EMPTY:
        transaction = replace(transaction, partitions=frozenset())
    record = decode_record(KINDS, *encode_record(record_of(transaction, 1)))
    assert record is not None and record.value is not None
    assert record.key.transactional_id == transaction.transactional_id
    found = transaction_of(transaction.transactional_id, record.value)
    assert found == replace(transaction, last_epoch=NO_EPOCH, deadline_ms=0)


def test_the_version_before_tags_leaves_out_what_it_has_no_place_for() -> None:
    transaction = Transaction("tx", 7, 3, 1000, State.ONGOING, start_ms=5, updated_ms=6)
    transaction.previous_producer_id = 7
    record = decode_record(KINDS, *encode_record(record_of(transaction, 0)))
    assert record is not None and record.value is not None
    assert record.value_version == 0
    found = transaction_of("tx", record.value)
    assert found == replace(transaction, previous_producer_id=-1)


def test_a_tombstone_is_a_key_without_a_value() -> None:
    key, value = encode_record(tombstone("tx"))
    assert value is None
    record = decode_record(KINDS, key, value)
    assert record is not None
    assert record.key.transactional_id == "tx"


def test_states_are_spelled_as_kafka_does() -> None:
    assert [state.label for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
