"""A coordinator's batch is what the encoder of all batches makes of the same records."""

from hypothesis import given
from hypothesis import strategies as st

from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.native.journal_batch import encode_pairs

TEXTS = st.binary(max_size=2000)
INT64 = st.integers(0, 2**62)


@given(
    st.lists(st.tuples(TEXTS, st.none() | TEXTS), min_size=1, max_size=80),
    INT64,
    st.integers(-1, 2**62),
    st.integers(-1, 2**15 - 1),
    st.booleans(),
)
def test_the_batch_is_the_same(
    pairs: list[tuple[bytes, bytes | None]],
    now_ms: int,
    producer_id: int,
    epoch: int,
    control: bool,
) -> None:
    expected = encode(
        [Record(key, value, now_ms) for key, value in pairs],
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=producer_id >= 0,
        control=control,
    )
    assert encode_pairs(pairs, now_ms, producer_id, epoch, control=control) == expected


def test_more_records_than_the_table_of_small_numbers_holds() -> None:
    pairs = [(b"%d" % number, None) for number in range(5000)]
    expected = encode([Record(key, None, 7) for key, _ in pairs])
    assert encode_pairs(pairs, 7, -1, -1) == expected
