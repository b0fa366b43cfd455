"""What the exporter is told about partitions and groups, and how few at a time."""

from collections.abc import Callable

import pytest

from runnel.broker import gauges
from runnel.broker.gauges import Gauges
from runnel.broker.partition import Partition
from runnel.exporter.layout import FILE_BYTES, PARTITIONS, PartitionRow, Slot
from runnel.exporter.reading import Snapshot
from runnel.metrics import Metrics
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.asking import batch, create, produce
from tests.support.asking_groups import COMMIT_BY_NAME, commit_request, find
from tests.support.desk import Desk, at_desk


def gauges_of(desk: Desk) -> tuple[Metrics, Gauges]:
    """Those of the desk's broker, beside it: at a desk there is no exporter."""
    broker, metrics = desk.broker, Metrics(bytearray(FILE_BYTES))
    services = broker._services
    return metrics, Gauges(
        metrics,
        broker.partitions,
        services.flusher,
        services.log_dirs,
        broker.groups,
        broker.transactions,
        services.waiting,
        services.workers,
    )


def rows(metrics: Metrics) -> dict[tuple[str, int], PartitionRow]:
    now = snapshot(metrics)
    found = [PartitionRow._make(row) for row in now.partitions()]
    return {(now.names[row.topic], row.partition): row for row in found}


def snapshot(metrics: Metrics) -> Snapshot:
    assert metrics.shared is not None
    metrics.publish()
    return Snapshot(memoryview(metrics.shared))


def test_a_partition_is_told_of_as_it_stands() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        await produce(desk, batch(b"one", b"two", at_ms=1_700_000_000_123), index=1)
        metrics, told = gauges_of(desk)
        await told.refresh()  # what was written to
        await told.refresh()  # the first round of all
        found = rows(metrics)
        assert set(found) == {("t", 0), ("t", 1)}
        row = found["t", 1]
        assert (row.log_start_offset, row.log_end_offset, row.high_watermark) == (0, 2, 2)
        assert (row.is_leader, row.is_offline, row.segment_count) == (1, 0, 1)
        assert row.size_bytes == desk.broker.partitions.get("t", 1).log.size_bytes
        assert row.oldest_ms == 1_700_000_000_123
        assert found["t", 0].oldest_ms == -1, "it is empty"

    at_desk(test)


def test_after_a_start_the_oldest_time_is_read_from_the_file() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"one", at_ms=1_700_000_000_123))
        await desk.restart()
        log = desk.broker.partitions.get("t", 0).log
        log.segments[0]._first_timestamp = -2  # as if nobody had looked since
        metrics, told = gauges_of(desk)
        await told.refresh()
        await told.refresh()
        assert rows(metrics)["t", 0].oldest_ms == 1_700_000_000_123

    at_desk(test)


def test_a_deleted_topic_gives_its_rows_back_and_another_of_its_name_gets_its_own() -> None:
    async def test(desk: Desk) -> None:
        metrics, told = gauges_of(desk)
        for _ in range(3):
            await create(desk, partitions=5)
            await produce(desk, batch(b"x"))
            await told.refresh()
            await told.refresh()
            assert len(rows(metrics)) == 5
            topics = [DeleteTopicState(name="t")]
            await desk.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000))
            await told.refresh()
            await told.refresh()
            assert rows(metrics) == {}
        assert metrics.slots[Slot.PARTITIONS_USED] == 5, "rows are used again"

    at_desk(test)


def test_what_was_written_to_comes_first_and_the_rest_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gauges, "SWEPT_PER_TICK", 10)

    async def test(desk: Desk) -> None:
        await create(desk, partitions=35)
        metrics, told = gauges_of(desk)
        await told.refresh()
        desk.broker._services.flusher.moved.clear()
        desk.broker._services.flusher.touched.clear()
        await produce(desk, batch(b"x"), index=34)
        await told.refresh()
        assert rows(metrics)["t", 34].high_watermark == 1
        for _ in range(4):
            await told.refresh()
        assert len(rows(metrics)) == 35

    at_desk(test)


def test_once_all_are_told_of_the_rest_is_looked_at_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gauges, "SWEPT_PER_TICK", 100)
    monkeypatch.setattr(gauges, "SWEPT_WHEN_SETTLED", 5)

    async def test(desk: Desk) -> None:
        await create(desk, partitions=35)
        metrics, told = gauges_of(desk)
        await told.refresh()
        assert len(rows(metrics)) == 35
        for partition in desk.broker.partitions:
            partition.high_watermark = 7
        desk.broker._services.flusher.touched.clear()
        await told.refresh()
        assert [row.high_watermark for row in rows(metrics).values()].count(7) == 5

    at_desk(test)


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        (lambda partition: setattr(partition, "high_watermark", 1), "high_watermark", 1),
        (lambda partition: setattr(partition, "high_watermark", 1), "last_stable_offset", 1),
        (lambda partition: setattr(partition, "is_leader", False), "is_leader", 0),
        (lambda partition: setattr(partition.log, "offline", "gone"), "is_offline", 1),
        (lambda partition: setattr(partition.log, "log_start_offset", 1), "log_start_offset", 1),
        (lambda partition: setattr(partition.log, "log_end_offset", 9), "log_end_offset", 9),
        (lambda partition: setattr(partition.log.segments[0], "size", 7), "size_bytes", 7),
        (
            lambda partition: partition.log.segments.append(partition.log.segments[0]),
            "segment_count",
            2,
        ),
        (
            lambda partition: setattr(partition.log.segments[0], "_first_timestamp", 5),
            "oldest_ms",
            5,
        ),
    ],
)
def test_whatever_changes_is_told(
    change: Callable[[Partition], None], field: str, value: int
) -> None:
    """A row that says what is so is not written again; so each of its fields must be looked at."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"one", b"two"))
        metrics, told = gauges_of(desk)
        await told.refresh()
        await told.refresh()
        assert getattr(rows(metrics)["t", 0], field) != value
        partition = desk.broker.partitions.get("t", 0)
        change(partition)
        await told.refresh()
        await told.refresh()
        assert getattr(rows(metrics)["t", 0], field) == value
        partition.log.segments[1:] = []

    at_desk(test)


def test_partitions_without_a_row_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    few = PARTITIONS._replace(row_count_max=3)
    monkeypatch.setattr("runnel.broker.partition_gauges.PARTITIONS", few)

    async def test(desk: Desk) -> None:
        await create(desk, partitions=5)
        metrics, told = gauges_of(desk)
        await told.refresh()
        await told.refresh()
        assert metrics.slots[Slot.PARTITIONS_USED] == 3
        assert metrics.slots[Slot.PARTITIONS_LEFT_OUT] == 2

    at_desk(test)


def test_a_group_is_told_of_until_it_is_deleted() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=3)
        await find(desk, "g")
        metrics, told = gauges_of(desk)
        for offsets in ({0: 5, 2: 7}, {1: 6, 2: 8}):
            await desk.ask(commit_request(offsets), COMMIT_BY_NAME)
            await told.refresh()
        committed = {(row.partition, row.offset) for row in snapshot(metrics).offsets()}
        assert committed == {(0, 5), (1, 6), (2, 8)}
        (group,) = snapshot(metrics).groups
        assert snapshot(metrics).names[group.group] == "g"
        assert (group.protocol, group.state, group.member_count) == (0, 0, 0)
        await desk.ask(DeleteGroupsRequest(groups_names=["g"]))
        await told.refresh()
        assert snapshot(metrics).groups == [] and list(snapshot(metrics).offsets()) == []
        await desk.ask(commit_request({0: 1}), COMMIT_BY_NAME)
        await told.refresh()
        assert [row.offset for row in snapshot(metrics).offsets()] == [1]
        assert metrics.slots[Slot.OFFSETS_USED] == 3, "rows are used again"

    at_desk(test)
