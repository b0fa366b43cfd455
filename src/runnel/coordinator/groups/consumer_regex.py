"""Subscriptions by regular expression: which topics they stand for, looked up beside the work.

A look-up takes all expressions of a group together, so that they lead to one new assignment, and
goes over the topics in short steps. It is begun by a heartbeat: when an expression is new, when
there are other topics, and now and then.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

from runnel.coordinator.groups.consumer_group import ConsumerGroup, Resolved
from runnel.coordinator.groups.consumer_member import ConsumerMember
from runnel.coordinator.groups.consumer_records import regex_tombstone
from runnel.coordinator.records import JournalRecord
from runnel.coordinator.regex import Matches, compile_regex
from runnel.errors import ErrorCode, RunnelError

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

REFRESH_MIN_INTERVAL_MS: Final = 10_000
REFRESH_INTERVAL_MS: Final = 600_000
REGEXES_MAX: Final = 100  # different ones in a group
STEP_MS: Final = 5  # of looking up, before others have a turn
STEP_NAMES: Final = 500  # likewise, where time stands still
PAUSE_MS: Final = STEP_MS  # so that half of the time is for others, at the least

Found = dict[str, Resolved]


class Change(Enum):
    """What a heartbeat did to the member's expression."""

    NONE = 0
    UNRESOLVED = 1  # it is another one, and nobody knows yet what it stands for
    RESOLVED = 2  # it is another one, or none: the group can be assigned anew

    @property
    def is_one(self) -> bool:
        return self is not Change.NONE


class RegexSubscriptions:
    """Of one shard; `found` is told what the expressions of a group stand for."""

    def __init__(self, machine: "GroupMachine", found: Callable[[str, Found], None]) -> None:
        self._machine = machine
        self._found = found
        self._revision = -1
        self._names: frozenset[str] = frozenset()
        self._names_since = 0  # counts the changes of the names
        self._resolving: set[str] = set()  # groups

    def change(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
        records: list[JournalRecord],
    ) -> Change:
        """Raises INVALID_REGULAR_EXPRESSION."""
        if before.regex == after.regex:
            return Change.NONE
        if before.regex and group.subscriber_count(before.regex) == 1:
            records.append(regex_tombstone(group.group_id, before.regex))
        if not after.regex or after.regex in group.resolved:
            return Change.RESOLVED
        if not group.subscriber_count(after.regex):
            compile_regex(after.regex)
            if len(group.regexes()) >= REGEXES_MAX:
                raise RunnelError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"A group may have {REGEXES_MAX} different regular expressions.",
                )
        return Change.UNRESOLVED

    def maybe_look_up(self, group: ConsumerGroup) -> None:
        """After a heartbeat was written. Does nothing for a group without expressions."""
        regexes = group.regexes()
        if not regexes or group.group_id in self._resolving:
            return
        now_ms = self._machine.shard.clock.wall_ms()
        times = (resolved.timestamp_ms for resolved in group.resolved.values())
        age_ms = now_ms - max(times, default=now_ms - REFRESH_INTERVAL_MS - 1)
        if 0 <= age_ms <= REFRESH_MIN_INTERVAL_MS:
            return
        if (
            regexes != group.resolved.keys()
            or group.regexes_looked_up_in != self._current_names()
            or not 0 <= age_ms <= REFRESH_INTERVAL_MS
        ):
            self._begin(group, sorted(regexes))

    def _current_names(self) -> int:
        topics = self._machine.topics
        if topics.revision != self._revision:
            self._revision = topics.revision
            names = frozenset(topics.names())
            if names != self._names:
                self._names = names
                self._names_since += 1
        return self._names_since

    def _begin(self, group: ConsumerGroup, regexes: list[str]) -> None:
        group_id = group.group_id
        self._resolving.add(group_id)
        current = self._current_names()
        version, now_ms = self._revision, self._machine.shard.clock.wall_ms()
        matching: dict[str, set[str]] = {regex: set() for regex in regexes}
        work = self._match(sorted(self._names), matching)

        def step() -> None:
            if next(work, None) is not None:
                self._machine.shard.after(PAUSE_MS, step)
                return
            self._resolving.discard(group_id)
            found = {
                regex: Resolved(frozenset(topics), version, now_ms)
                for regex, topics in matching.items()
            }
            with suppress(RunnelError):  # not written: the next heartbeat begins anew
                self._found(group_id, found)
                group.regexes_looked_up_in = current

        self._machine.shard.after(0, step)

    def _match(self, names: list[str], matching: dict[str, set[str]]) -> Iterator[int]:
        """Fills the sets. Yields when it is somebody else's turn; to compile takes time, too."""
        clock = self._machine.shard.clock
        began_ms, count = clock.monotonic_ms(), 0
        patterns: list[tuple[Matches, set[str]]] = []
        for regex, topics in matching.items():
            with suppress(RunnelError):  # another broker's library took it; here it stands for none
                patterns.append((compile_regex(regex), topics))
            if clock.monotonic_ms() - began_ms >= STEP_MS:
                yield count
                began_ms = clock.monotonic_ms()
        for name in names:
            for matches, topics in patterns:
                if matches(name):
                    topics.add(name)
                count += 1
                if count >= STEP_NAMES or clock.monotonic_ms() - began_ms >= STEP_MS:
                    yield count
                    began_ms, count = clock.monotonic_ms(), 0
