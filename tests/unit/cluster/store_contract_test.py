"""One suite for every metadata store: what etcd promises and the brokers rely on."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from runnel.cluster.reserve import RESERVE_BYTES, SLICE_BYTES, Reserve
from runnel.cluster.sqlite import RESERVE_NAME, SqliteStore
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import (
    MAX_TXN_OPERATIONS,
    Changes,
    Compacted,
    Compare,
    Delete,
    MetadataStore,
    Outcome,
    Put,
    TxnResult,
)
from tests.simulated.store import FakeStore, StoreFaults


class LoopClock:
    """Both times are the loop's, which the fake store uses as well."""

    skipped_ms = 0

    def wall_ms(self) -> int:
        return self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000) + self.skipped_ms


Test = Callable[[MetadataStore], Awaitable[None]]


@pytest.fixture(params=["sqlite", "fake"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Test], None]:
    """Runs a coroutine function on a store of each kind, on its own loop."""

    async def with_store(test: Test) -> None:
        store: MetadataStore
        if request.param == "sqlite":
            store = await SqliteStore.open(tmp_path, LoopClock())
        else:
            store = FakeStore(random.Random(1))
        await test(store)
        await store.close()

    def run_one(test: Test) -> None:
        asyncio.run(with_store(test))

    return run_one


async def put(store: MetadataStore, key: str, value: bytes, lease: int = 0) -> int:
    result = await store.txn([], [Put(key, value, lease)])
    assert result.outcome is Outcome.OK
    return result.revision


async def take(
    events: AsyncGenerator[Changes | Compacted, None], count: int
) -> list[Changes | Compacted]:
    async with asyncio.timeout(5):
        return [await anext(events) for _ in range(count)]


def test_one_revision_per_transaction(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        assert (await store.read("")).revision == 0
        assert await store.txn([], [Put("a", b"1"), Put("b", b"2")]) == TxnResult(Outcome.OK, 1)
        assert await store.txn([], [Put("a", b"3"), Delete("b")]) == TxnResult(Outcome.OK, 2)
        snapshot = await store.read("")
        assert snapshot.revision == 2
        assert [tuple(entry) for entry in snapshot.entries] == [("a", b"3", 1, 2, 2, 0)]
        await put(store, "b", b"4")
        (entry,) = (await store.read("b")).entries
        assert (entry.create_revision, entry.version) == (3, 1), "a deleted key begins anew"

    run(test)


def test_what_changes_nothing_makes_no_revision(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        revision = await put(store, "a", b"1")
        assert await store.txn([], [Delete("none")]) == TxnResult(Outcome.OK, revision)
        assert await store.txn([], []) == TxnResult(Outcome.OK, revision)
        assert await put(store, "a", b"1") == revision + 1, "the same value is still a change"

    run(test)


@pytest.mark.parametrize(
    ("compare", "holds"),
    [
        (Compare("a", "mod_revision", 2), True),
        (Compare("a", "mod_revision", 1), False),
        (Compare("a", "create_revision", 1), True),
        (Compare("a", "create_revision", 2), False),
        (Compare("a", "version", 2), True),
        (Compare("a", "version", 0), False),
        (Compare("a", "value", b"2"), True),
        (Compare("a", "value", b"1"), False),
        (Compare("none", "version", 0), True),
        (Compare("none", "mod_revision", 0), True),
        (Compare("none", "create_revision", 0), True),
        (Compare("none", "mod_revision", 1), False),
        (Compare("none", "value", b""), False),
    ],
)
def test_a_compare_decides(run: Callable[[Test], None], compare: Compare, holds: bool) -> None:
    async def test(store: MetadataStore) -> None:
        await put(store, "a", b"1")
        await put(store, "a", b"2")
        result = await store.txn(
            [Compare("a", "version", 2), compare], [Put("b", b""), Delete("a")]
        )
        keys = [entry.key for entry in (await store.read("")).entries]
        if holds:
            assert result == TxnResult(Outcome.OK, 3)
            assert keys == ["b"]
        else:
            assert result == TxnResult(Outcome.REFUSED, 2)
            assert keys == ["a"], "one false compare refuses everything"

    run(test)


def test_a_prefix_selects_sorted_keys(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        for key in ("part/b", "part/a/2", "part", "part/a/1", "partition", "topic/ä"):
            await put(store, key, b"")
        assert [e.key for e in (await store.read("part/")).entries] == [
            "part/a/1",
            "part/a/2",
            "part/b",
        ]
        assert len((await store.read("")).entries) == 6

    run(test)


def test_concurrent_increments_are_all_counted(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        async def increment() -> None:
            while True:
                entries = (await store.read("n")).entries
                seen, number = (
                    (entries[0].mod_revision, int(entries[0].value)) if entries else (0, 0)
                )
                result = await store.txn(
                    [Compare("n", "mod_revision", seen)], [Put("n", b"%d" % (number + 1))]
                )
                if result.outcome is Outcome.OK:
                    return

        await asyncio.gather(*[increment() for _ in range(20)])
        assert (await store.read("n")).entries[0].value == b"20"

    run(test)


def test_a_watch_replays_then_follows(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        first = await put(store, "a/1", b"1")
        await put(store, "other", b"")
        events = store.watch("a/", first)
        (replayed,) = await take(events, 1)
        assert isinstance(replayed, Changes) and replayed.revision == first
        waiting = asyncio.ensure_future(take(events, 2))
        await asyncio.sleep(0)
        await put(store, "b", b"")
        await store.txn([], [Put("a/1", b"2"), Put("a/2", b"3"), Put("c", b"")])
        await store.txn([], [Delete("a/1")])
        seen = await waiting
        assert all(isinstance(event, Changes) for event in seen)
        flat = [
            (change.key, change.entry.value if change.entry else None, change.revision)
            for event in seen
            if isinstance(event, Changes)
            for change in event.changes
        ]
        assert flat == [("a/1", b"2", 4), ("a/2", b"3", 4), ("a/1", None, 5)]

    run(test)


def test_a_watch_misses_and_repeats_nothing(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        seen: list[int] = []

        async def follow() -> None:
            async for event in store.watch("", 1):
                assert isinstance(event, Changes)
                seen.append(event.revision)
                if event.revision == 29:
                    return

        task = asyncio.ensure_future(follow())
        for number in range(1, 30):
            assert await put(store, f"k{number % 3}", b"") == number
        async with asyncio.timeout(5):
            await task
        assert seen == list(range(1, 30)), "every revision once, in order"

    run(test)


def test_a_watch_ends_when_the_store_closes(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        async def follow() -> list[Changes | Compacted]:
            return [event async for event in store.watch("", 1)]

        task = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        await store.close()
        async with asyncio.timeout(5):
            assert await task == []

    run(test)


def test_a_closed_store_is_of_unknown_outcome(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        await store.close()
        assert (await store.txn([], [Put("a", b"")])).outcome is Outcome.UNKNOWN
        with pytest.raises(RunnelError) as raised:
            await store.read("")
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        with pytest.raises(RunnelError):
            await store.grant_lease(1000)
        with pytest.raises(RunnelError):
            await store.keep_alive(1)

    run(test)


def test_a_revoked_lease_takes_its_keys(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        lease, other = await store.grant_lease(60_000), await store.grant_lease(60_000)
        assert lease != other
        await store.txn([], [Put("live/1", b"", lease), Put("controller", b"", lease)])
        await store.txn([], [Put("live/2", b"", other), Put("reg/1", b"")])
        await put(store, "controller", b"2", other)
        events = store.watch("", 4)
        await store.revoke_lease(lease)
        (event,) = await take(events, 1)
        assert isinstance(event, Changes)
        assert [(change.key, change.entry) for change in event.changes] == [("live/1", None)]
        assert not await store.keep_alive(lease)
        assert await store.keep_alive(other)
        keys = [entry.key for entry in (await store.read("")).entries]
        assert keys == ["controller", "live/2", "reg/1"], "the last put decides whose a key is"
        late = await store.txn([], [Put("live/1", b"", lease)])
        assert late.outcome is Outcome.REFUSED, "a lease that is gone holds nothing"

    run(test)


def test_too_many_operations_are_our_bug(run: Callable[[Test], None]) -> None:
    async def test(store: MetadataStore) -> None:
        writes = [Put(f"k{n}", b"") for n in range(MAX_TXN_OPERATIONS)]
        assert (await store.txn([], writes)).outcome is Outcome.OK
        with pytest.raises(AssertionError):
            await store.txn([Compare("a", "version", 0)], writes)
        with pytest.raises(AssertionError):
            await store.txn([], [Put("a", b""), Delete("a")])

    run(test)


def test_a_lease_runs_out_in_sqlite(tmp_path: Path) -> None:
    async def test() -> None:
        clock = LoopClock()
        store = await SqliteStore.open(tmp_path, clock)
        lease = await store.grant_lease(5000)
        await put(store, "live/1", b"", lease)
        clock.skipped_ms = 4900
        assert await store.keep_alive(lease)
        clock.skipped_ms = 9500
        assert [entry.key for entry in (await store.read("")).entries] == ["live/1"]
        clock.skipped_ms = 10_000
        assert (await store.read("")).entries == []
        assert not await store.keep_alive(lease)
        await store.close()

    asyncio.run(test())


def test_sqlite_keeps_all_but_leased_keys_over_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        store = await SqliteStore.open(tmp_path, LoopClock())
        await put(store, "kept", b"\0\xff")
        await put(store, "live/1", b"", await store.grant_lease(60_000))
        before = (await store.read("kept")).entries
        await store.close()
        again = await SqliteStore.open(tmp_path, LoopClock())
        snapshot = await again.read("")
        assert snapshot.entries == before
        assert snapshot.revision == 3, "the deletion of the leased key is a revision too"
        assert await take(again.watch("", 3), 1) == [Compacted(3)]
        events = again.watch("", 4)
        assert await put(again, "kept", b"") == 4
        (event,) = await take(events, 1)
        assert isinstance(event, Changes) and event.revision == 4
        await again.close()

    asyncio.run(test())


def test_sqlite_forgets_old_history(tmp_path: Path) -> None:
    async def test() -> None:
        store = await SqliteStore.open(tmp_path, LoopClock(), history_changes=10)
        for number in range(1, 31):
            assert await put(store, "a", b"%d" % number) == number
        assert await take(store.watch("", 20), 1) == [Compacted(20)]
        events = await take(store.watch("", 21), 10)
        assert [event.revision for event in events if isinstance(event, Changes)] == [
            *range(21, 31)
        ]
        await store.close()

    asyncio.run(test())


def test_a_cancelled_caller_takes_nothing_from_the_watchers(tmp_path: Path) -> None:
    async def test() -> None:
        store = await SqliteStore.open(tmp_path, LoopClock())
        events = store.watch("", 1)
        for number in range(50):
            task = asyncio.ensure_future(store.txn([], [Put(f"a{number}", b"")]))
            await asyncio.sleep(0.001 * (number % 3))
            task.cancel()
        last = await put(store, "b", b"")
        seen = await take(events, last)
        numbers = [event.revision for event in seen if isinstance(event, Changes)]
        assert numbers == list(range(1, last + 1)), "a change that nobody was told of"
        await store.close()

    asyncio.run(test())


def test_a_folder_that_is_none_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "metadata.db").write_bytes(b"this is no database" * 1000)

    async def test() -> None:
        with pytest.raises(RunnelError) as raised:
            await SqliteStore.open(tmp_path, LoopClock())
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(test())


def test_the_fake_injects_every_kind_of_unknown() -> None:
    async def test() -> None:
        store = FakeStore(random.Random(7), StoreFaults(unknown=0.5, late_ms=1, compact=0.1))
        unknown = 0
        for number in range(200):
            result = await store.txn([], [Put(f"k{number}", b"")])
            unknown += result.outcome is Outcome.UNKNOWN
        await asyncio.sleep(0.01)
        happened = store.happened
        assert unknown == sum(happened[f"unknown, {k}"] for k in ("applied", "late", "lost"))
        assert min(happened[f"unknown, {k}"] for k in ("applied", "late", "lost")) > 10
        assert happened["compacted"] > 5
        stored = len((await store.read("")).entries)
        assert stored == 200 - happened["unknown, lost"]
        await store.grant_lease(1000)
        store.lose_all_leases()
        assert happened["leases lost"] == 1

    asyncio.run(test())


def test_on_a_full_disk_metadata_can_still_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would make room, a deleted topic or a shorter retention, has to be written first."""

    async def test() -> None:
        store = await SqliteStore.open(tmp_path, LoopClock())
        await put(store, "small", b"")
        reserve = tmp_path / RESERVE_NAME
        assert reserve.stat().st_size == RESERVE_BYTES
        db, give_some = store._table._db, Reserve.give_some
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count={pages}")  # SQLite then says what it says of a full disk

        with pytest.raises(RunnelError, match="database or disk is full") as raised:
            await put(store, "large", bytes(100_000))
        assert raised.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert reserve.stat().st_size == 0, "all of it was tried"
        await store.close()

        store = await SqliteStore.open(tmp_path, LoopClock())
        assert reserve.stat().st_size == RESERVE_BYTES, "filled again"
        db = store._table._db
        db.execute(f"PRAGMA max_page_count={pages}")

        def give_some_that_helps(mine: Reserve) -> bool:
            db.execute("PRAGMA max_page_count=1000")
            return give_some(mine)

        monkeypatch.setattr(Reserve, "give_some", give_some_that_helps)
        await put(store, "large", bytes(100_000))
        assert reserve.stat().st_size == RESERVE_BYTES - SLICE_BYTES
        assert [entry.key for entry in (await store.read("")).entries] == ["large", "small"]
        await store.close()

    asyncio.run(test())
