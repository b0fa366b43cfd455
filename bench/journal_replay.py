"""A start with a journal of many commits: from the start of the process to committed offsets.

The journal is put into the folder of a broker that was killed, as if its consumers had committed
for days: a batch for each commit, over all partitions of the offsets topic. So the time has the
recovery of those logs in it, too. Every group must then have the offset of its last commit.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.commits import await_commit
from bench.coordination import PASSING, await_coordinator
from bench.model import Broker
from bench.restart import ANSWER_TIMEOUT_S, POLL_S, Answered, answered, connect, start
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import make_topic
from runnel.bench.usage import Usage
from runnel.broker.coordinators import java_hash
from runnel.client.coordinators import KeyType
from runnel.client.raw import WireClient
from runnel.coordinator.records import JournalRecord, encode_record
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue

TOPIC, JOURNAL = "replayed", "__consumer_offsets"
GROUPS = 1000
FETCH_VERSION = 9
VALUE_VERSION = 3
SEGMENT = "00000000000000000000"
_OFFSET_BYTES = 8


def replay(broker: Broker, data_dir: Path, commits: int) -> Answered:
    """`broker` is not running, its folder is empty. Raises LoadError for an offset that is lost."""
    start(broker)
    groups = [f"replayed-{number}" for number in range(GROUPS)]
    with WireClient(broker.address, timeout_s=ANSWER_TIMEOUT_S) as client:
        topic = make_topic(client, TOPIC, 1)
        await_coordinator(client, KeyType.GROUP, groups[0])
        for group in groups:
            await_commit(client, group, topic)
    broker.kill()
    last = write_journal(data_dir, groups, commits)
    started = time.perf_counter()
    broker.spawn()
    usage = Usage(broker.pid)
    with connect(broker) as client:
        _await_offsets(client, groups, last)
        return answered(started, usage)


def write_journal(data_dir: Path, groups: Sequence[str], commits: int) -> int:
    """In place of what is there; returns the offset that each group committed last."""
    folders = sorted(data_dir.glob(f"{JOURNAL}-*"))
    if not folders:
        raise LoadError(f"{data_dir} has no {JOURNAL}")
    each = max(1, commits // len(groups))
    by_partition: defaultdict[int, list[str]] = defaultdict(list)
    for group in groups:
        by_partition[java_hash(group) % len(folders)].append(group)
    for partition, here in by_partition.items():
        folder = data_dir / f"{JOURNAL}-{partition}"
        for path in folder.glob(f"{SEGMENT}.*"):
            path.unlink()
        with (folder / f"{SEGMENT}.log").open("wb") as log:
            log.writelines(_batches(here, each))
    return each


def _batches(groups: Sequence[str], each: int) -> Iterator[bytes]:
    """Only the last commit of a group differs from those before it, and offsets need no CRC."""
    early, late = ([_commit(group, offset) for group in groups] for offset in (1, each))
    base_offset = 0
    for turn in range(1, each + 1):
        for batch in late if turn == each else early:
            yield base_offset.to_bytes(_OFFSET_BYTES, "big")
            yield batch
            base_offset += 1


def _commit(group: str, offset: int) -> bytes:
    """A batch without its base offset."""
    now_ms = time.time_ns() // 1_000_000
    value = OffsetCommitValue(offset=offset, commit_timestamp=now_ms)
    record = JournalRecord(OffsetCommitKey(group=group, topic=TOPIC), value, VALUE_VERSION)
    batch = encode([Record(*encode_record(record), now_ms)], partition_leader_epoch=0)
    return bytes(batch[_OFFSET_BYTES:])


def _await_offsets(client: WireClient, groups: Sequence[str], expected: int) -> None:
    topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=name, topics=topics) for name in groups]
    )
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline:
        found = client.call(request, version=FETCH_VERSION).groups
        codes = {row.error_code for row in found}
        if codes == {0}:
            wrong = [
                row.group_id
                for row in found
                if row.topics[0].partitions[0].committed_offset != expected
            ]
            if wrong:
                raise LoadError(f"{len(wrong)} groups lost their last commit, such as {wrong[0]}")
            return
        if codes - PASSING - {0}:
            raise LoadError(f"offsets cannot be fetched: {codes}")
        time.sleep(POLL_S)
    raise LoadError("the journal is not replayed in time")
