"""A coordinator's batch is what the encoder of all batches makes of the same records.

So is that of the Python twin; offsets are compared with the codecs where they are used
(`coordinator/groups/offset_records_test.py`), and here between the twins.
"""

from hypothesis import given
from hypothesis import strategies as st

from runnel.native import _journal_py
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.native.journal_batch import encode_pairs, offset_key, offset_value

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
    for encoder in (encode_pairs, _journal_py.encode_pairs):
        assert encoder(pairs, now_ms, producer_id, epoch, control=control) == expected


def test_more_records_than_the_table_of_small_numbers_holds() -> None:
    pairs = [(b"%d" % number, None) for number in range(5000)]
    expected = encode([Record(key, None, 7) for key, _ in pairs])
    assert encode_pairs(pairs, 7, -1, -1) == _journal_py.encode_pairs(pairs, 7, -1, -1) == expected


@given(
    st.text(st.characters(codec="utf-8"), max_size=400),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.just(bytes(16)) | st.binary(min_size=16, max_size=16),
)
def test_offsets_of_both_twins_are_the_same(
    text: str, number: int, large: int, topic_id: bytes
) -> None:
    assert offset_key(text, text[::-1], number) == _journal_py.offset_key(text, text[::-1], number)
    arguments = (large, number, text, large // 2, topic_id)
    assert offset_value(*arguments) == _journal_py.offset_value(*arguments)
