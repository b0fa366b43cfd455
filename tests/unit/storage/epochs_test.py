"""The epoch cache, rule by rule (R7-R10)."""

import pytest

from runnel.storage.checkpoints import EpochStart
from runnel.storage.epochs import LeaderEpochs


def _epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(EpochStart(*entry) for entry in entries)


def test_an_epoch_without_records_is_kept() -> None:
    epochs = _epochs((0, 0))
    epochs.assign(1, 10)
    epochs.assign(2, 20)
    assert epochs.entries == ((0, 0), (1, 10), (2, 20))
    assert epochs.dirty


def test_a_new_leader_at_the_same_offset_replaces_the_epoch_that_wrote_nothing() -> None:
    epochs = _epochs((0, 0), (1, 10))
    epochs.assign(3, 10)
    assert epochs.entries == ((0, 0), (3, 10))


def test_assigning_what_is_known_changes_nothing() -> None:
    epochs = _epochs((0, 0), (1, 10))
    epochs.assign(1, 15)
    assert epochs.entries == ((0, 0), (1, 10))
    assert not epochs.dirty


def test_an_older_epoch_removes_what_contradicts_it() -> None:
    epochs = _epochs((0, 0), (3, 10), (5, 20))
    epochs.assign(2, 15)
    assert epochs.entries == ((0, 0), (2, 15))


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),  # a follower that knows none
        (1, (1, 10)),  # before all that is known: that data is gone
        (2, (2, 20)),
        (3, (2, 20)),  # never seen here: the largest below it
        (4, (4, 30)),
        (6, (6, 44)),  # the current one ends where the log does
        (7, (-1, -1)),  # later than anything known
    ],
)
def test_end_offset_for(epoch: int, answer: tuple[int, int]) -> None:
    assert _epochs((2, 10), (4, 20), (6, 30)).end_offset_for(epoch, 44) == answer


def test_end_offset_of_an_empty_cache() -> None:
    assert _epochs().end_offset_for(0, 0) == (-1, -1)


def test_truncation_cuts_epochs_at_the_offset_too() -> None:
    """KAFKA-10706: also an epoch that starts exactly there, and so has no records."""
    epochs = _epochs((0, 0), (1, 10), (2, 20))
    epochs.truncate_from_end(20)
    assert epochs.entries == ((0, 0), (1, 10))
    assert epochs.latest_epoch == 1
    epochs.truncate_from_end(11)
    assert epochs.entries == ((0, 0), (1, 10))


def test_the_epoch_that_holds_the_new_start_moves_with_it() -> None:
    epochs = _epochs((0, 0), (1, 10), (2, 20))
    epochs.truncate_from_start(15)
    assert epochs.entries == ((1, 15), (2, 20))
    epochs.truncate_from_start(20)
    assert list(epochs.entries) == [(2, 20)]
    epochs.truncate_from_start(5)
    assert list(epochs.entries) == [(2, 20)]


def test_epoch_for_an_offset() -> None:
    epochs = _epochs((1, 10), (2, 20))
    assert [epochs.epoch_for(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 1, 1, 2, 2]
