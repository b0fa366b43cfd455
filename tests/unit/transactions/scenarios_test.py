"""The named scenarios of RELIABILITY.md that are about producers and transactions."""

import asyncio

import pytest

from runnel.client.raw import ClosedError
from runnel.coordinator.transactions.transaction import record_of
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.encode import encode
from tests.support.asking import create, produce
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Outage, Sender, committed

BOTH = pytest.mark.parametrize("is_new", [False, True], ids=["old", "new"])


def last_stable(desk: Desk) -> int:
    return desk.broker.partitions.get("t", 0).last_stable_offset


def log_end(desk: Desk) -> int:
    return desk.broker.partitions.get("t", 0).log.log_end_offset


@BOTH
def test_s17_a_produce_that_comes_after_the_abort_leaves_nothing_hanging(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=is_new)
        await sender.init()
        await sender.send(b"aborted")
        epoch, end = sender.epoch, log_end(desk)
        await sender.abort()
        sender.epoch, following = epoch, sender.epoch
        late = await sender.produce(b"late", sequence=1)
        expected = ErrorCode.INVALID_PRODUCER_EPOCH if is_new else ErrorCode.INVALID_TXN_STATE
        assert late.error_code == expected
        assert log_end(desk) == end + 1 == last_stable(desk), "the marker, and no more"
        sender.epoch = following
        await sender.send(b"kept")
        await sender.commit()
        assert await committed(desk) == [b"kept"]

    at_desk(test, FEW)


def test_s17_a_late_first_record_finds_no_transaction_either() -> None:
    """The partition was not written to before, so only the coordinator can refuse."""

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        sender = Sender(desk, is_new=False)
        await sender.init()
        await sender.send(b"aborted", index=1)
        assert await sender.add("t", 0) == [0]
        await sender.abort()
        assert (await sender.produce(b"late")).error_code == ErrorCode.INVALID_TXN_STATE
        zombie = Sender(desk, "other")
        await zombie.init()
        await zombie.abort()
        zombie.epoch = 0
        assert (await zombie.produce(b"late")).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert last_stable(desk) == log_end(desk)

    at_desk(test, FEW)


def test_s18_an_end_that_comes_late_does_not_end_the_next_transaction() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        await sender.send(b"one")
        epoch = sender.epoch
        await sender.commit()
        await sender.send(b"two")
        sender.epoch, following = epoch, sender.epoch
        for commit in (False, True):
            late = await sender.end(commit=commit, keeps_epoch=True)
            assert late.error_code == ErrorCode.PRODUCER_FENCED
        sender.epoch = following
        assert sender.state == "Ongoing"
        await sender.send(b"three")
        await sender.commit()
        assert await committed(desk) == [b"one", b"two", b"three"]

    at_desk(test, FEW)


@BOTH
@pytest.mark.parametrize("commit", [False, True], ids=["abort", "commit"])
def test_s19_markers_are_written_and_the_coordinator_begins_anew(
    commit: bool, is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By restart: the markers are in the partitions, and no Complete record says so (KAFKA-19999).

    The next coordinator writes them again, which changes nothing, and the answer that was lost is
    given to the one who asks again.
    """

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        sender = Sender(desk, is_new=is_new)
        await sender.init()
        await sender.send(b"x")
        await sender.send(b"x", index=1)
        with Outage(monkeypatch, after_writes=3):
            with pytest.raises(ClosedError):
                await sender.end(commit=commit, keeps_epoch=True)
            assert sender.state == ("PrepareCommit" if commit else "PrepareAbort")
            assert last_stable(desk) == 2, "the marker is there"
        await desk.restart()
        assert sender.state == ("CompleteCommit" if commit else "CompleteAbort")
        assert await committed(desk) == await committed(desk, index=1) == [b"x"] * commit
        assert (await sender.end(commit=commit)).error_code == 0
        assert sender.epoch == int(is_new)
        await sender.send(b"y")
        await sender.commit()
        assert await committed(desk) == [b"x"] * commit + [b"y"]

    at_desk(test, FEW)


async def at_epoch(desk: Desk, sender: Sender, epoch: int) -> None:
    """As if it had gone through all epochs before."""
    machine = desk.broker.transactions.shard_of(sender.transactional_id).machine
    transaction = machine.transactions[sender.transactional_id]
    transaction.epoch = epoch
    machine.shard.write([record_of(transaction, 1)])
    sender.epoch = epoch


@pytest.mark.parametrize("commit", [False, True], ids=["abort", "commit"])
def test_s20_the_last_epochs_of_the_new_protocol(commit: bool) -> None:
    """KAFKA-18660: 32766 is the last that a client has; its end brings another producer id."""

    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        first_id = sender.producer_id
        await at_epoch(desk, sender, 32765)
        await sender.send(b"a")
        await sender.commit()
        assert (sender.producer_id, sender.epoch) == (first_id, 32766)
        await sender.send(b"b")
        ended = await sender.end(commit=commit, keeps_epoch=True)
        assert ended.error_code == 0
        assert ended.producer_epoch == 0
        assert ended.producer_id != first_id
        again = await sender.end(commit=commit, keeps_epoch=True)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (
            0,
            ended.producer_id,
            0,
        ), "the answer was lost"
        await desk.restart()
        again = await sender.end(commit=commit)
        assert (again.error_code, again.producer_id) == (0, ended.producer_id)
        sender.sequences.clear()
        await sender.send(b"c")
        await sender.commit()
        assert (sender.producer_id, sender.epoch) == (ended.producer_id, 1)
        assert await committed(desk) == [b"a"] + [b"b"] * commit + [b"c"]

    at_desk(test, FEW)


@BOTH
def test_s20_fencing_in_the_last_epoch(is_new: bool) -> None:
    """KAFKA-20090: the abort takes 32767, which no client ever has, and then a new id."""

    async def test(desk: Desk) -> None:
        await create(desk)
        zombie, sender = Sender(desk, is_new=is_new), Sender(desk, is_new=is_new)
        await zombie.init()
        await at_epoch(desk, zombie, 32766)
        await zombie.send(b"lost")
        assert (await sender.init()).error_code == 0
        assert sender.producer_id != zombie.producer_id
        assert sender.epoch in (0, 1)
        ended = await zombie.end(commit=True)
        assert ended.error_code in (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.PRODUCER_FENCED,
        )
        refused = await zombie.produce(b"zombie")
        assert refused.error_code in (
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        )
        await sender.send(b"kept")
        await sender.commit()
        assert await committed(desk) == [b"kept"]

    at_desk(test, FEW)


def test_s20_init_rotates_the_id_when_epochs_are_used_up() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=False)
        await sender.init()
        first_id = sender.producer_id
        await at_epoch(desk, sender, 32765)
        await sender.init(continues=True)
        assert (sender.producer_id, sender.epoch) == (first_id, 32766)
        again = Sender(desk, is_new=False)
        again.producer_id, again.epoch = first_id, 32766
        await sender.init(continues=True)
        assert sender.producer_id != first_id
        assert sender.epoch == 0
        lost = await again.init_once(continues=True)
        assert (lost.error_code, lost.producer_id, lost.producer_epoch) == (
            0,
            sender.producer_id,
            0,
        ), "the answer was lost"
        again.epoch = 32765
        refused = await again.init_once(continues=True)
        assert refused.error_code == ErrorCode.PRODUCER_FENCED

    at_desk(test, FEW)


@BOTH
def test_s21_a_commit_that_races_the_time_out_is_fenced(is_new: bool) -> None:
    """KAFKA-20785: it is told that it is fenced, and nothing of it is ever committed."""

    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=is_new)
        await sender.init(timeout_ms=5_000)
        await sender.send(b"late")
        await asyncio.sleep(4.9)
        assert sender.state == "Ongoing"
        await asyncio.sleep(10.2)
        assert sender.state == "CompleteAbort"
        ended = await sender.end(commit=True)
        assert ended.error_code == ErrorCode.PRODUCER_FENCED
        refused = await sender.produce(b"later")
        assert refused.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await committed(desk) == []
        assert last_stable(desk) == log_end(desk)

    at_desk(test, FEW)


def test_s21_time_goes_on_while_the_broker_is_down() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init(timeout_ms=60_000)
        await sender.send(b"late")
        await asyncio.sleep(50)
        await desk.restart()
        assert sender.state == "Ongoing"
        await asyncio.sleep(21)
        assert sender.state == "CompleteAbort"

    at_desk(test, FEW)


@BOTH
def test_s23_two_producers_alternate_with_one_transactional_id(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        two = [Sender(desk, is_new=is_new) for _ in range(2)]
        expected: list[bytes] = []
        for turn in range(10):
            sender, other = two[turn % 2], two[(turn + 1) % 2]
            assert (await sender.init()).error_code == 0
            value = b"%d" % turn
            assert (await sender.send(value)).error_code == 0
            if turn:
                assert (await other.end(commit=True)).error_code == ErrorCode.PRODUCER_FENCED
                refused = await other.produce(b"hijacked")
                assert refused.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
            if turn % 3:
                await sender.commit()
                expected.append(value)
        await two[0].init()
        assert await committed(desk) == expected

    at_desk(test, FEW)


async def numbered(
    desk: Desk, sequence: int, value: bytes = b"x", count: int = 1
) -> tuple[int, int]:
    records = encode(
        [Record(b"k", value, desk.clock.wall_ms())] * count,
        producer_id=9,
        producer_epoch=0,
        base_sequence=sequence,
    )
    result = await produce(desk, bytes(records))
    return result.error_code, result.base_offset


def test_s25_the_sixth_last_batch_is_not_known_any_more() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for sequence in range(6):
            assert await numbered(desk, sequence) == (0, sequence)
        for sequence in range(1, 6):
            assert await numbered(desk, sequence) == (0, sequence), "one of the last five"
        code, _ = await numbered(desk, 0)
        assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log_end(desk) == 6

    at_desk(test, FEW)


def test_s26_a_producer_that_is_forgotten_may_go_on_anywhere() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await numbered(desk, 0) == (0, 0)
        partition = desk.broker.partitions.get("t", 0)
        now_ms = desk.clock.wall_ms()
        assert partition.log.producers.expire(now_ms + 90_000_000, 86_400_000) == 1
        assert await numbered(desk, 7) == (0, 1)
        assert await numbered(desk, 7) == (0, 1), "and is known again"

    at_desk(test, FEW)


def test_s26_in_a_transaction_of_the_new_protocol_it_must_begin_anew() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        refused = await sender.produce(b"x", sequence=7)
        assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert sender.state == "Empty"
        assert (await sender.produce(b"x")).error_code == 0

    at_desk(test, FEW)


@BOTH
def test_s27_sequences_wrap_in_a_transaction(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await numbered(desk, 2**31 - 2) == (0, 0)
        assert await numbered(desk, 2**31 - 1) == (0, 1)
        assert await numbered(desk, 0) == (0, 2)
        sender = Sender(desk, is_new=is_new)
        await sender.init()
        if is_new:
            assert (await sender.send(b"first")).error_code == 0
            producer = desk.broker.partitions.get("t", 0).log.producers.producers
            last = producer[sender.producer_id].batches[-1]
            producer[sender.producer_id].batches[-1] = last._replace(last_sequence=2**31 - 2)
        else:
            assert await sender.add("t", 0) == [0]
            assert (await sender.produce(b"first", sequence=2**31 - 2)).error_code == 0
        assert (await sender.produce(b"a", b"b", sequence=2**31 - 1)).error_code == 0
        assert (await sender.produce(b"c", sequence=1)).error_code == 0
        await sender.commit()
        assert (await committed(desk))[3:] == [b"first", b"a", b"b", b"c"]

    at_desk(test, FEW)


def test_clients_may_not_write_transactional_or_control_batches_on_their_own() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        record = [Record(b"k", b"v", desk.clock.wall_ms())]
        for control, code in (
            (False, ErrorCode.INVALID_TXN_STATE),
            (True, ErrorCode.INVALID_RECORD),
        ):
            batch = encode(
                record,
                producer_id=sender.producer_id,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
                control=control,
            )
            assert (await produce(desk, bytes(batch))).error_code == code
        assert log_end(desk) == 0

    at_desk(test, FEW)
