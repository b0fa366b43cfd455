"""The judge of groups and transactions finds each anomaly it has a name for, and no others."""

from collections.abc import Callable

import pytest

from runnel.types import TopicPartition
from tests.support.checker import Verdict
from tests.support.coordinated import NO_OFFSET, Coordinated, Transaction
from tests.support.coordinated_checker import check_coordinated, check_copy
from tests.support.history import History, Outcome, Record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def _new() -> Coordinated:
    return Coordinated(History())


def _transact(
    seen: Coordinated,
    values: dict[TopicPartition, list[str]],
    outcome: Outcome,
    *,
    asked: bool = True,
) -> Transaction:
    transaction = seen.transaction("p", "id")
    transaction.values |= values
    if asked:
        transaction.end_began = seen.tick()
    seen.end(transaction, outcome, "why")
    return transaction


def _read(
    seen: Coordinated, partition: TopicPartition, records: list[Record], *,
    span: tuple[int, int] = (0, 10), stable: int = 10, end: int = 10, is_final: bool = False,
) -> None:  # fmt: skip
    seen.read(
        "c", partition, span, records, last_stable_offset=stable, high_watermark=end,
        began=seen.tick(), is_final=is_final,
    )  # fmt: skip


def _names(seen: Coordinated) -> list[str]:
    return [anomaly.name for anomaly in check_coordinated(seen).anomalies]


def test_a_whole_history_has_no_anomaly() -> None:
    seen = _new()
    _transact(seen, {A: ["a1"], B: ["b1"]}, Outcome.OK)
    _transact(seen, {A: ["a2"]}, Outcome.FAIL)
    _transact(seen, {A: ["a3"], B: ["b3"]}, Outcome.UNKNOWN)
    _read(seen, A, [(0, "a1")], span=(0, 3))
    _read(seen, A, [(0, "a1"), (5, "a3")], is_final=True)
    _read(seen, B, [(0, "b1"), (2, "b3")], is_final=True)
    seen.grant("g", "m1", 1, [A], joined=True, began=seen.tick())
    seen.grant("g", "m2", 2, [A], joined=True, began=seen.tick())
    (commit,) = seen.commits("g", "m1", {A: 5})
    seen.settle(commit, Outcome.OK)
    seen.fetched("g", {A: 5}, began=seen.tick())
    assert _names(seen) == []


def _aborted(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"]}, Outcome.FAIL)
    _read(seen, A, [(0, "x")])


def _never_asked(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"]}, Outcome.UNKNOWN, asked=False)
    _read(seen, A, [(0, "x")])


def _dirty(seen: Coordinated) -> None:
    transaction = seen.transaction("p", "id")
    transaction.values[A] = ["x"]
    _read(seen, A, [(0, "x")])
    transaction.end_began = seen.tick()
    seen.end(transaction, Outcome.OK)


def _torn(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"], B: ["y"]}, Outcome.UNKNOWN)
    _read(seen, A, [(0, "x")], is_final=True)
    _read(seen, B, [], is_final=True)


def _lost(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"]}, Outcome.OK)
    _read(seen, A, [], is_final=True)


def _phantom(seen: Coordinated) -> None:
    _read(seen, A, [(0, "x")])


def _twice(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"]}, Outcome.OK)
    _read(seen, A, [(0, "x"), (1, "x")])


def _two_values(seen: Coordinated) -> None:
    _transact(seen, {A: ["x", "y"]}, Outcome.OK)
    _read(seen, A, [(0, "x")])
    _read(seen, A, [(0, "y")])


def _skipped(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"]}, Outcome.OK)
    _read(seen, A, [], span=(0, 5))
    _read(seen, A, [(3, "x")], is_final=True)


def _past_stable(seen: Coordinated) -> None:
    _transact(seen, {A: ["x"]}, Outcome.OK)
    _read(seen, A, [(3, "x")], stable=3)


def _stable_went_back(seen: Coordinated) -> None:
    _read(seen, A, [], stable=5)
    _read(seen, A, [], stable=4)


def _hanging(seen: Coordinated) -> None:
    _read(seen, A, [], stable=5, end=6, is_final=True)


def _owners(seen: Coordinated) -> None:
    for member in ("m1", "m2"):
        seen.grant("g", member, 3, [A], joined=False, began=seen.tick())


def _epoch_went_back(seen: Coordinated) -> None:
    for member, epoch in (("m1", 3), ("m2", 2)):
        seen.grant("g", member, epoch, [], joined=True, began=seen.tick())


def _offset_went_back(seen: Coordinated) -> None:
    for offset in (3, 7):
        (commit,) = seen.commits("g", "m", {A: offset})
        seen.settle(commit, Outcome.OK)
    seen.fetched("g", {A: 3}, began=seen.tick())


def _offset_gone(seen: Coordinated) -> None:
    (commit,) = seen.commits("g", "m", {A: 3})
    seen.settle(commit, Outcome.OK)
    seen.fetched("g", {A: NO_OFFSET}, began=seen.tick())


def _transactions_offset_gone(seen: Coordinated) -> None:
    transaction = seen.transaction("p", "id")
    transaction.group, transaction.offsets = "g", {A: 3}
    transaction.end_began = seen.tick()
    seen.end(transaction, Outcome.OK)
    seen.fetched("g", {A: NO_OFFSET}, began=seen.tick())


def _aborted_offset(seen: Coordinated) -> None:
    transaction = seen.transaction("p", "id")
    transaction.group, transaction.offsets = "g", {A: 3}
    seen.end(transaction, Outcome.FAIL)
    seen.fetched("g", {A: 3}, began=seen.tick())


@pytest.mark.parametrize(
    ("happens", "name"),
    [
        (_aborted, "aborted-read"),
        (_never_asked, "aborted-read"),
        (_dirty, "dirty-read"),
        (_torn, "torn-transaction"),
        (_lost, "lost-write"),
        (_phantom, "phantom-read"),
        (_twice, "duplicate"),
        (_two_values, "inconsistent-offsets"),
        (_skipped, "poll-skip"),
        (_past_stable, "read-past-stable"),
        (_stable_went_back, "stable-regressed"),
        (_hanging, "hanging-transaction"),
        (_owners, "two-owners"),
        (_epoch_went_back, "epoch-regressed"),
        (_offset_went_back, "committed-lost"),
        (_offset_gone, "committed-lost"),
        (_transactions_offset_gone, "committed-lost"),
        (_aborted_offset, "committed-phantom"),
    ],
)
def test_each_anomaly_is_found(happens: Callable[[Coordinated], None], name: str) -> None:
    seen = _new()
    happens(seen)
    assert _names(seen) == [name]


@pytest.mark.parametrize(
    ("copied", "offset", "is_right"),
    [
        (["a", "b"], 2, True),
        ([], NO_OFFSET, True),
        (["a"], 2, False),
        (["a", "b"], 1, False),
        (["a", "a", "b"], 2, False),
        (["b", "a"], 2, False),
    ],
)
def test_a_copy_is_its_source_up_to_its_offset(
    copied: list[str], offset: int, is_right: bool
) -> None:
    verdict = Verdict()
    check_copy(verdict, {A: ["a", "b", "c"]}, {A: copied}, {A: offset})
    assert [anomaly.name for anomaly in verdict.anomalies] == ([] if is_right else ["copy-differs"])
