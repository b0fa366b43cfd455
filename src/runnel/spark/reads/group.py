"""The consumer group of a query: where its first batch begins, and how far it has come.

Spark asks a source where to begin at least twice for the first batch, and again if that batch is
run anew after a crash; it tells a Python source nothing about its checkpoint. So the answer is
kept in the group, as committed offsets with a note (`runnel-initial`) beside each, and given again
until the first batch is known to be done. From then on the group has the ends of finished batches,
for tools that show lag. The source never reads them back: the checkpoint alone decides.
"""

import logging
import time
from collections.abc import Mapping
from typing import Final

from runnel.arrow.errors import SourceError
from runnel.client.cluster import ClientError, Cluster, RefusedError, addresses_of
from runnel.client.group_offsets import commit_offsets, committed_offsets, delete_offsets
from runnel.errors import ErrorCode
from runnel.spark.reads.brokers import CLIENT_ID, api_timeout_s
from runnel.spark.reads.offsets import Offsets
from runnel.types import TopicPartition

NOTE: Final = "runnel-initial"
PROGRESS_TIMEOUT_S: Final = 5.0  # for what only informs
PAUSE_AFTER_FAILURE_S: Final = 30.0
TELL_ALL_S: Final = 3600.0
_log: Final = logging.getLogger(__name__)


class QueryGroup:
    """On the driver, with a connection of its own. `fingerprint` is that of where to begin."""

    def __init__(
        self, client: Mapping[str, str], group: str, fingerprint: str, *, commits: bool
    ) -> None:
        self._group = group
        self._note = f"{NOTE} {fingerprint}"
        self._commits = commits
        self._timeout_s = api_timeout_s(client)
        self._cluster = Cluster(
            addresses_of(client["bootstrap.servers"]),
            client_id=client.get("client.id") or CLIENT_ID,
            timeout_s=self._timeout_s,
        )
        self._told: dict[TopicPartition, int] = {}
        self._told_all_at = 0.0
        self._quiet_until = 0.0

    def initial(self) -> Offsets | None:
        """What was kept for the same options and is not yet done with. Raises SourceError."""
        try:
            found = self._cluster.retried(
                lambda: committed_offsets(self._cluster, self._group), reconnect=True
            )
        except ClientError as error:
            raise self._failure(error) from None
        offsets: dict[TopicPartition, int] = {}
        ids: dict[str, str] = {}
        for at, row in found.items():
            note, _, topic_id = row.metadata.rpartition(" ")
            if note == self._note:
                offsets[at] = row.offset
                ids[at.topic] = topic_id
        known = {topic: topic_id for topic, topic_id in ids.items() if topic_id != "-"}
        return Offsets(offsets, known) if offsets else None

    def keep_initial(self, offsets: Offsets) -> None:
        """Before the first batch is planned. Raises SourceError."""
        notes = {
            at: f"{self._note} {offsets.topic_ids.get(at.topic, '-')}"
            for at in offsets.by_partition
        }
        if not notes:
            return
        try:
            self._cluster.retried(
                lambda: commit_offsets(self._cluster, self._group, offsets.by_partition, notes),
                reconnect=True,
            )
        except ClientError as error:
            raise self._failure(error) from None

    def advance(self, offsets: Offsets) -> None:
        """All before these is done with. Never fails: what goes wrong is logged.

        Offsets that stay the same are committed once in an hour, lest the broker let them expire.
        """
        now, done = time.monotonic(), offsets.by_partition
        if self._commits and now - self._told_all_at > TELL_ALL_S:
            self._told.clear()
            self._told_all_at = now
        fresh = {at: offset for at, offset in done.items() if self._told.get(at) != offset}
        if not fresh or now < self._quiet_until:
            return
        self._cluster.timeout_s = PROGRESS_TIMEOUT_S
        try:
            if self._commits:
                commit_offsets(self._cluster, self._group, fresh)
            elif not self._told:  # what was kept is done with
                delete_offsets(self._cluster, self._group, fresh)
            self._told |= fresh
        except ClientError as error:
            self._quiet_until = time.monotonic() + PAUSE_AFTER_FAILURE_S
            _log.warning("offsets are not committed to group %s: %s", self._group, error)
        finally:
            self._cluster.timeout_s = self._timeout_s

    def close(self) -> None:
        self._cluster.close()

    def _failure(self, error: ClientError) -> SourceError:
        has_members = isinstance(error, RefusedError) and error.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
        )
        if has_members:
            return SourceError(
                f"group {self._group} has members: consumers that are no Spark query use it. Give"
                " the query a queryId (or kafka.group.id) of its own"
            )
        return SourceError(
            f"where the query begins cannot be kept in group {self._group}: {error}; the option"
            " queryId (or kafka.group.id) names it"
        )
