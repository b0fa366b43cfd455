"""What every client is put through with transactions: what a reader of committed records sees."""

from tests.compat.group_calls import GroupCalls
from tests.compat.group_operations import read_all
from tests.compat.serve import COPIED
from tests.compat.subject import Body, Subject, records

SOME = 40


def _require_committed(
    subject: Subject, calls: GroupCalls, topic: str, purpose: str, spans: list[tuple[int, int]]
) -> None:
    """A group reads exactly these records of `records()`: even ones in partition 0, odd in 1."""
    calls.join("reader", subject.group_name(purpose), topic)
    count = sum(last - first for first, last in spans)
    read = read_all(calls, ["reader"], count)["reader"]
    calls.leave("reader")
    for partition in (0, 1):
        wanted = [
            row for first, last in spans for row in records(last - first, first)[partition::2]
        ]
        found = [row for row in read if row.partition == partition]
        offsets = [row.offset for row in found]
        assert offsets == sorted(set(offsets)), f"read at {offsets}"
        subject.require_records(wanted, [row.record for row in found])


def transaction(subject: Subject) -> None:
    """Committed, aborted, committed by the same producer's id: the second is not read."""
    topic, name = subject.topic("transaction"), subject.group_name("transaction")
    for first, commit in ((0, True), (SOME, False), (2 * SOME, True)):
        subject.groups.transaction(name, topic, records(SOME, first), commit=commit)
    _require_committed(
        subject, subject.other, topic, "transaction-other", [(0, SOME), (2 * SOME, 3 * SOME)]
    )


def read_committed(subject: Subject) -> None:
    """Another client writes: what the subject reads of it is committed."""
    topic, name = subject.topic("committed"), subject.group_name("committed")
    for first, commit in ((0, False), (SOME, True), (2 * SOME, False), (3 * SOME, True)):
        producer = f"{name}-{first}" if subject.driver.lacks("repeated aborts") else name
        subject.other.transaction(producer, topic, records(SOME, first), commit=commit)
    spans = [(SOME, 2 * SOME), (3 * SOME, 4 * SOME)]
    _require_committed(subject, subject.groups, topic, "committed-reader", spans)


def copy(subject: Subject) -> None:
    """Aborted first, so that neither its records nor its offsets count; then in two parts."""
    source, target = subject.topic("copied"), subject.topic("copies")
    name, group = subject.group_name("copier"), subject.group_name("copied")
    subject.send(source, records(SOME))
    for count, commit in ((SOME - 5, False), (SOME // 2, True)):
        subject.groups.copy(name, group, source, target, count, commit=commit)
        found = subject.committed(group, source, 0)
        assert found == (SOME // 2 if commit else None), f"committed {found}"
    subject.groups.copy(name, group, source, target, SOME - SOME // 2, commit=True)
    assert subject.committed(group, source, 0) == SOME
    subject.other.join("reader", subject.group_name("copies-reader"), target)
    read = read_all(subject.other, ["reader"], SOME)["reader"]
    subject.other.leave("reader")
    wanted = [row._replace(value=COPIED + (row.value or b"")) for row in records(SOME)]
    subject.require_records(wanted, [row.record for row in read])


TRANSACTION_OPERATIONS: dict[str, Body] = {
    "transaction": transaction,
    "read committed": read_committed,
    "transactional copy": copy,
}
