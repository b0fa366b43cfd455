"""The calls about groups and transactions that a client under test is told by lines.

A client holds any number of members, told apart by the names that the operations give them.
Members read committed records only and commit nothing by themselves. They need not do anything
between two calls, so whoever waits for a rebalance polls all of them in turn.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.compat.driver import Driver, Record, from_json, to_json

CLASSIC, CONSUMER = "classic", "consumer"  # Kafka's names of the two protocols


class Polled(NamedTuple):
    partition: int
    offset: int
    record: Record


class Committed(NamedTuple):
    offset: int
    metadata: str


class GroupCalls:
    """What one client can do with groups and transactions; see `Driver` for the rest."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def join(self, member: str, group: str, topic: str, protocol: str = CLASSIC) -> None:
        """A consumer that starts at the earliest offset where the group has committed none."""
        self._driver.call("join", member=member, group=group, topic=topic, protocol=protocol)

    def poll(self, member: str, timeout_ms: int = 200) -> list[Polled]:
        found = self._driver.call("poll", member=member, timeout_ms=timeout_ms)
        return [
            Polled(int(line["partition"]), int(line["offset"]), from_json(line)) for line in found
        ]

    def assigned(self, member: str) -> set[int]:
        return {int(partition) for partition in self._driver.call("assigned", member=member)}

    def commit(self, member: str) -> None:
        """What the member has been given so far, and wait until the broker has it."""
        self._driver.call("commit", member=member)

    def leave(self, member: str) -> None:
        self._driver.call("leave", member=member)

    def commit_offset(self, group: str, topic: str, partition: int, committed: Committed) -> None:
        """By hand, in a group without members."""
        self._driver.call(
            "commit_offset",
            group=group,
            topic=topic,
            partition=partition,
            offset=committed.offset,
            metadata=committed.metadata,
        )

    def committed(self, group: str, topic: str, partition: int) -> Committed | None:
        """None if nothing is committed; metadata is "" from a client that does not tell it."""
        found = self._driver.call("committed", group=group, topic=topic, partition=partition)
        return None if found is None else Committed(int(found["offset"]), found["metadata"] or "")

    def list_groups(self) -> set[str]:
        return set(self._driver.call("list_groups"))

    def describe_group(self, group: str) -> tuple[str, int]:
        """Its state as the client spells it, and how many members it has."""
        found = self._driver.call("describe_group", group=group)
        return str(found["state"]), int(found["members"])

    def delete_group(self, group: str) -> None:
        self._driver.call("delete_group", group=group)

    def transaction(
        self, transactional_id: str, topic: str, records: Sequence[Record], *, commit: bool
    ) -> None:
        """The records in one transaction, to partition 0 and 1 in turn, and its end."""
        lines = [to_json(record) for record in records]
        self._driver.call(
            "transaction",
            transactional_id=transactional_id,
            topic=topic,
            records=lines,
            commit=commit,
        )

    def copy(
        self,
        transactional_id: str,
        group: str,
        topic: str,
        target: str,
        count: int,
        *,
        commit: bool,
    ) -> None:
        """Consume, transform, produce, in one transaction with the group's offsets.

        The next `count` records of the topic go to the same partitions of the target, as they are
        but for `serve.COPIED` before each value.
        """
        self._driver.call(
            "copy",
            transactional_id=transactional_id,
            group=group,
            topic=topic,
            target=target,
            count=count,
            commit=commit,
        )
