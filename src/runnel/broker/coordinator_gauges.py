"""How groups stand and how far they have come, and how transactions stand, for the exporter."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.broker.coordinators import Coordinators
from runnel.broker.shared_rows import NO_ROW, SharedNames, SharedRows
from runnel.exporter.layout import (
    GROUP_PROTOCOLS,
    GROUP_STATES,
    GROUPS,
    OFFSETS,
    TRANSACTION_STATES,
    Slot,
)
from runnel.metrics import Metrics

if TYPE_CHECKING:  # a broker without groups or transactions need not pay for them
    from runnel.coordinator.groups.group import Group
    from runnel.coordinator.groups.machine import GroupMachine
    from runnel.coordinator.transactions.machine import TransactionMachine

_STATES: Final = {name: number for number, name in enumerate(GROUP_STATES)}
_PROTOCOLS: Final = {name: number for number, name in enumerate(GROUP_PROTOCOLS)}


class GroupGauges:
    def __init__(
        self, metrics: Metrics, names: SharedNames, groups: "Coordinators[GroupMachine]"
    ) -> None:
        assert metrics.shared is not None
        self._metrics = metrics
        self._names = names
        self._coordinators = groups
        self._table = SharedRows(metrics.shared, GROUPS, metrics)
        self._offsets = SharedRows(metrics.shared, OFFSETS, metrics)
        self._rows: dict[str, tuple[int, int]] = {}  # its row, the number of its name
        # By group, topic and index: its row, the number of the topic's name.
        self._offset_rows: dict[str, dict[str, dict[int, tuple[int, int]]]] = {}

    def sweep(self) -> Iterator[None]:
        groups_left_out = offsets_left_out = 0
        seen: set[str] = set()
        for shard in list(self._coordinators):
            machine = shard.machine
            for group in list(machine.groups.values()):
                if group.group_id not in machine.groups:
                    continue  # deleted since
                seen.add(group.group_id)
                if self._refresh(group):
                    for had_no_row in self._refresh_offsets(machine, group.group_id):
                        offsets_left_out += had_no_row
                        yield
                else:
                    groups_left_out += 1
                yield
        for group_id in [each for each in self._rows if each not in seen]:
            self._forget(group_id)
            yield
        self._metrics.slots[Slot.GROUPS_LEFT_OUT] = groups_left_out
        self._metrics.slots[Slot.OFFSETS_LEFT_OUT] = offsets_left_out

    def _refresh(self, group: "Group") -> bool:
        place = self._rows.get(group.group_id)
        if place is None:
            row = self._table.take()
            if row == NO_ROW:
                return False
            number = self._names.take(group.group_id)
            if not number:
                self._table.give_back(row)
                return False
            place = self._rows[group.group_id] = row, number
        self._table.write(
            place[0],
            place[1],
            _PROTOCOLS[group.type.value],
            _STATES[group.state_name],
            group.member_count,
            group.rebalance_count,
        )
        return True

    def _refresh_offsets(self, machine: "GroupMachine", group_id: str) -> Iterator[bool]:
        """For each offset, whether it found no row. Others take turns meanwhile."""
        by_topic = self._offset_rows.setdefault(group_id, {})
        group, committed = self._rows[group_id][1], machine.offsets.committed
        for topic in list(committed.by_group.get(group_id, ())):
            rows = by_topic.setdefault(topic, {})
            for index in list(committed.by_group.get(group_id, {}).get(topic, ())):
                found = committed.get(group_id, topic, index)
                if found is None:
                    continue
                place = rows.get(index) or self._new_offset_row(topic)
                if place is not None:
                    rows[index] = place
                    self._offsets.write(place[0], group, place[1], index, found.offset)
                yield place is None
        for topic, rows in list(by_topic.items()):
            for index in list(rows):
                if committed.get(group_id, topic, index) is None:
                    self._give_back_offset(topic, rows.pop(index)[0])
                yield False
            if not rows:
                del by_topic[topic]

    def _new_offset_row(self, topic: str) -> tuple[int, int] | None:
        row = self._offsets.take()
        if row == NO_ROW:
            return None
        number = self._names.take(topic)
        if not number:
            self._offsets.give_back(row)
            return None
        return row, number

    def _give_back_offset(self, topic: str, row: int) -> None:
        self._offsets.give_back(row)
        self._names.give_back(topic)

    def _forget(self, group_id: str) -> None:
        for topic, rows in self._offset_rows.pop(group_id, {}).items():
            for row, _ in rows.values():
                self._give_back_offset(topic, row)
        self._table.give_back(self._rows.pop(group_id)[0])
        self._names.give_back(group_id)


class TransactionGauges:
    def __init__(self, metrics: Metrics, transactions: "Coordinators[TransactionMachine]") -> None:
        self._metrics = metrics
        self._coordinators = transactions

    def sweep(self) -> Iterator[None]:
        counts = [0] * len(TRANSACTION_STATES)
        oldest_ms = 0
        for shard in list(self._coordinators):
            for transaction in list(shard.machine.transactions.values()):
                counts[transaction.state] += 1
                yield
            for transaction in shard.machine.ongoing.values():
                began_ms = transaction.start_ms
                oldest_ms = min(oldest_ms, began_ms) if oldest_ms else began_ms
        slots = self._metrics.slots
        slots[Slot.TRANSACTIONS : Slot.TRANSACTIONS + len(counts)] = counts
        slots[Slot.TRANSACTION_OLDEST_START_MS] = oldest_ms
