"""Where a group stands in one topic: `runnel consume --group` begins there and leaves it there.

The command does not join: it reads all partitions that it is told to, and commits as one who is no
member. So it is refused while the group has members, because offsets are theirs to commit.
"""

import time
from collections.abc import Mapping
from typing import Final

from runnel.cli.output import CommandError, note
from runnel.client.admin import EARLIEST, list_offsets
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.group_offsets import commit_offsets, committed_offsets
from runnel.client.groups import describe_group
from runnel.errors import ErrorCode
from runnel.types import TopicPartition

COMMIT_S: Final = 5.0  # as consumers do by default


class GroupPlace:
    """Remembers what was shown, and commits it now and then. Raises ClientError."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._shown: dict[int, int] = {}
        self._committed_at = time.monotonic()

    def begin(self, otherwise: Mapping[int, int]) -> dict[int, int]:
        """Where to go on in each partition; `otherwise` where the group has not committed."""
        self._ensure_inactive()
        found = committed_offsets(self._cluster, self._group)
        here = {at.index: row.offset for at, row in found.items() if at.topic == self._topic}
        starts = list_offsets(self._cluster, self._topic, dict.fromkeys(otherwise, EARLIEST))
        gone = [at for at in otherwise if here.get(at, starts[at]) < starts[at]]
        if gone:
            names = ", ".join(f"{self._topic}-{at}" for at in gone)
            note(f"records that {self._group} has not read are deleted already in {names}")
        return {at: max(here.get(at, otherwise[at]), starts[at]) for at in otherwise}

    def shown(self, next_offsets: Mapping[int, int]) -> None:
        """All before these offsets has left this process."""
        self._shown |= next_offsets
        if time.monotonic() - self._committed_at >= COMMIT_S:
            self.commit()

    def commit(self) -> None:
        offsets = {TopicPartition(self._topic, at): value for at, value in self._shown.items()}
        if offsets:
            commit_offsets(self._cluster, self._group, offsets)
        self._shown.clear()
        self._committed_at = time.monotonic()

    def _ensure_inactive(self) -> None:
        try:
            group = describe_group(self._cluster, self._group)
        except RefusedError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return
        if not group.is_inactive:
            raise CommandError(
                f"group {self._group} has {len(group.members)} members, which read for it: stop"
                " them first, or leave --group out to look without a trace."
            )
