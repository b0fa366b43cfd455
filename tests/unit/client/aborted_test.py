"""Aborted transactions are hidden: from where the broker says until their marker, no further."""

from runnel.client.aborted import Aborted
from runnel.native.records import decode
from runnel.wire.messages.fetch import AbortedTransaction
from tests.support.batches import make_batch, make_marker

ONE, OTHER = 1, 2  # producers


def written(*parts: tuple[int, int | None, bool | None]) -> bytes:
    """Batches by (how many records, producer, what its marker says if it is one), in order."""
    data, offset = b"", 0
    for count, producer, commit in parts:
        if commit is not None:
            assert producer is not None
            header, raw = make_marker(offset, commit=commit, producer_id=producer, producer_epoch=0)
        elif producer is None:
            header, raw = make_batch(offset, count)
        else:
            header, raw = make_batch(
                offset,
                count,
                producer_id=producer,
                producer_epoch=0,
                sequence=0,
                transactional=True,
            )
        data, offset = data + raw, header.next_offset
    return data


def visible(data: bytes, *aborted: tuple[int, int], step: int = 100) -> list[int]:
    """The offsets that are seen, with so many records decoded at a time."""
    hiding = Aborted(
        [AbortedTransaction(producer_id=who, first_offset=offset) for who, offset in aborted]
    )
    found: list[int] = []
    position, offset = 0, 0
    while position < len(data):
        columns = decode(
            data, position=position, from_offset=offset, max_records=step, max_bytes=1 << 20
        )
        found += [record.offset for record in hiding.visible(columns)]
        position, offset = columns.position, columns.next_offset
    return found


def test_an_aborted_transaction_is_hidden_and_the_next_one_is_not() -> None:
    data = written(
        (2, ONE, None),  # 0, 1
        (1, None, None),  # 2, of nobody
        (1, ONE, None),  # 3
        (0, ONE, False),  # 4
        (2, ONE, None),  # 5, 6
        (0, ONE, True),  # 7
    )
    assert visible(data, (ONE, 0)) == [2, 5, 6]
    assert visible(data) == [0, 1, 2, 3, 5, 6]  # a reader of all is told of none


def test_producers_between_each_other_and_a_page_that_ends_in_a_batch() -> None:
    data = written(
        (3, ONE, None),  # 0-2
        (3, OTHER, None),  # 3-5
        (0, OTHER, False),  # 6
        (1, OTHER, None),  # 7, the next one of that producer
        (1, ONE, None),  # 8
        (0, ONE, True),  # 9
        (0, OTHER, False),  # 10
    )
    for step in (1, 2, 5, 100):
        assert visible(data, (OTHER, 3), (OTHER, 7), step=step) == [0, 1, 2, 8]


def test_a_transaction_without_its_marker_in_this_answer() -> None:
    assert visible(written((2, ONE, None), (2, OTHER, None)), (ONE, 0)) == [2, 3]
