"""What every client is put through with groups: joining, sharing, committing, administration."""

import time
from collections.abc import Callable, Iterable

from tests.compat.checks import PATIENCE_S, require_soon
from tests.compat.driver import Record
from tests.compat.group_calls import CLASSIC, CONSUMER, Committed, GroupCalls, Polled
from tests.compat.subject import Body, Subject, records

SHARED_PARTITIONS = 4
EACH = 50  # records to each partition
REBALANCE_S = 40.0  # a client may notice a rebalance only by its next heartbeat


def read_all(calls: GroupCalls, members: Iterable[str], count: int) -> dict[str, list[Polled]]:
    """Polls the members in turn until they have `count` records in all, and then once more."""
    read: dict[str, list[Polled]] = {member: [] for member in members}
    deadline = time.monotonic() + REBALANCE_S
    while sum(map(len, read.values())) < count:
        told = {member: len(rows) for member, rows in read.items()}
        assert time.monotonic() < deadline, f"{told} of {count} records read"
        for member, rows in read.items():
            rows += calls.poll(member)
    for member, rows in read.items():
        rows += calls.poll(member)
    total = sum(map(len, read.values()))
    assert total == count, f"{total} records read, {count} wanted"
    return read


def until_shared(calls: GroupCalls, members: Iterable[str], partitions: int) -> dict[str, set[int]]:
    """Polls until every member has partitions, and each partition has one owner."""
    members = list(members)
    deadline = time.monotonic() + REBALANCE_S
    while True:
        for member in members:
            stray = calls.poll(member)
            assert not stray, f"{member} was given {len(stray)} records before any was sent"
        owned = {member: calls.assigned(member) for member in members}
        everything = sorted(partition for some in owned.values() for partition in some)
        if everything == list(range(partitions)) and all(owned.values()):
            return owned
        assert time.monotonic() < deadline, f"shared as {owned}"


def _resume(subject: Subject, protocol: str) -> None:
    """All is read once, and a consumer that comes later goes on where the first one committed."""
    calls, group = subject.groups, subject.group_name(f"resume-{protocol}")
    topic = subject.topic(f"resume-{protocol}")
    sent = {0: records(EACH), 1: records(EACH, first=1_000)}
    for partition, rows in sent.items():
        subject.send(topic, rows, partition=partition)
    calls.join("first", group, topic, protocol)
    read = read_all(calls, ["first"], 2 * EACH)["first"]
    for partition, rows in sent.items():
        subject.require_same(rows, _of(read, partition))
    calls.commit("first")
    calls.leave("first")
    found = {partition: subject.committed(group, topic, partition) for partition in (0, 1)}
    assert found == {0: EACH, 1: EACH}, f"committed {found}"
    subject.send(topic, records(7, first=2_000), partition=1)
    calls.join("second", group, topic, protocol)
    read = read_all(calls, ["second"], 7)["second"]
    calls.leave("second")
    subject.require_same(records(7, first=2_000), _of(read, 1), EACH)


def _share(subject: Subject, protocol: str) -> None:
    """Two members own all partitions, each once; who is left owns all of them."""
    calls, group = subject.groups, subject.group_name(f"share-{protocol}")
    topic = subject.topic(f"share-{protocol}", SHARED_PARTITIONS)
    calls.join("a", group, topic, protocol)
    until_shared(calls, ["a"], SHARED_PARTITIONS)
    calls.join("b", group, topic, protocol)
    owned = until_shared(calls, ["a", "b"], SHARED_PARTITIONS)
    for partition in range(SHARED_PARTITIONS):
        subject.send(topic, records(EACH, first=partition * EACH), partition=partition)
    read = read_all(calls, ["a", "b"], SHARED_PARTITIONS * EACH)
    for member, rows in read.items():
        partitions = {row.partition for row in rows}
        assert partitions == owned[member], f"{member} owns {owned[member]}, read {partitions}"
        for partition in partitions:
            wanted = records(EACH, first=partition * EACH)
            subject.require_same(wanted, _of(rows, partition))
    for member in read:
        calls.commit(member)
    calls.leave("b")
    until_shared(calls, ["a"], SHARED_PARTITIONS)
    (lost,) = sorted(owned["b"])[:1]
    subject.send(topic, records(3, first=500), partition=lost)
    subject.require_same(records(3, first=500), _of(read_all(calls, ["a"], 3)["a"], lost), EACH)
    calls.leave("a")


def _of(rows: list[Polled], partition: int) -> list[tuple[int, Record]]:
    return [(row.offset, row.record) for row in rows if row.partition == partition]


def _in(protocol: str, body: Callable[[Subject, str], None]) -> Body:
    return lambda subject: body(subject, protocol)


def offsets_by_hand(subject: Subject) -> None:
    calls, group = subject.groups, subject.group_name("by-hand")
    topic = subject.topic("by-hand")
    subject.send(topic, records(20))
    assert calls.committed(group, topic, 0) is None
    noted = "" if subject.driver.lacks("commit metadata") else "seen by hand ✓"
    calls.commit_offset(group, topic, 0, Committed(12, noted))
    assert subject.committed(group, topic, 0) == 12
    found = calls.committed(group, topic, 0)
    wanted = Committed(12, noted)
    assert found is not None
    if subject.driver.lacks("commit metadata"):
        found = found._replace(metadata="")
    assert found == wanted, f"wanted {wanted}, got {found}"
    assert calls.committed(group, topic, 1) is None
    calls.commit_offset(group, topic, 0, Committed(5, noted))
    assert subject.committed(group, topic, 0) == 5, "a lower offset is taken too"


def list_and_describe(subject: Subject) -> None:
    calls, group = subject.groups, subject.group_name("described")
    topic = subject.topic("described")
    subject.send(topic, records(5))
    assert group not in calls.list_groups()
    calls.join("a", group, topic)
    read_all(calls, ["a"], 5)
    calls.commit("a")
    assert group in calls.list_groups()
    assert calls.describe_group(group) == ("stable", 1), calls.describe_group(group)
    calls.leave("a")
    require_soon(lambda: calls.describe_group(group) == ("empty", 0), "the member is still there")
    assert group in calls.list_groups(), "a group with offsets stays"


def delete_group(subject: Subject) -> None:
    """Gone with its offsets; refused while a member is there."""
    calls, group = subject.groups, subject.group_name("deleted")
    topic = subject.topic("deleted")
    subject.send(topic, records(5))
    calls.join("a", group, topic)
    read_all(calls, ["a"], 5)
    calls.commit("a")
    subject.require_refused(lambda: calls.delete_group(group), "a group with members was deleted")
    assert subject.committed(group, topic, 0) == 5
    calls.leave("a")
    deadline = time.monotonic() + PATIENCE_S
    while subject.members(group):
        assert time.monotonic() < deadline, "the member is still there"
    calls.delete_group(group)
    assert subject.committed(group, topic, 0) is None
    assert not subject.is_listed(group), "the group is still listed"


GROUP_OPERATIONS: dict[str, Body] = {
    "group, classic": _in(CLASSIC, _resume),
    "two members, classic": _in(CLASSIC, _share),
    "group, consumer": _in(CONSUMER, _resume),
    "two members, consumer": _in(CONSUMER, _share),
    "offsets by hand": offsets_by_hand,
    "list, describe group": list_and_describe,
    "delete group": delete_group,
}
