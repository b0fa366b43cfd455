"""Finding out, on the driver, which partitions lie as files where tasks may read them.

`readMode=auto` reads files only where that is sure to give what the broker would give: `path` names
the data folders, or the broker is on this very machine and says where they are; their cluster id is
the broker's; and this broker leads the partition. The id of the topic goes with the range, and the
task compares it with that in the folder. `readMode=local` does the same and says on the driver what
is missing, instead of asking the broker for the records.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from runnel.arrow.errors import SourceError, UnansweredError
from runnel.arrow.log_files import split_path
from runnel.arrow.offline import Folders, OfflineError
from runnel.arrow.ranges import Place, Range, Scan
from runnel.client.cluster import ClientError, Cluster
from runnel.errors import RunnelError
from runnel.storage.checkpoints import META_PROPERTIES, MetaProperties, decode_meta
from runnel.types import NO_TOPIC_ID
from runnel.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from runnel.wire.messages.metadata import MetadataResponse

BELIEVED_S: Final = 60.0  # a partition that has moved, a topic made anew: tasks find out anyway
ANY_NODE: Final = -1


class _Owner(NamedTuple):
    """Data folders and the broker whose they are."""

    folders: tuple[str, ...]
    node_id: int  # ANY_NODE where they cannot be read here and so do not say


class Locator:
    """One per reader on the driver."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._places: dict[tuple[str, int], Place | None] = {}
        self._asked_at = float("-inf")

    def placed(self, ranges: Sequence[Range], cluster: Cluster | None) -> list[Range]:
        """The ranges, those that lie in files with their place; without a broker all do.

        Asks the cluster once a minute. Raises SourceError for a path that is wrong, and with
        `readMode=local` where nothing can be read so.
        """
        if self._scan.read_mode == "broker":
            return list(ranges)
        wanted = {(piece.topic, piece.partition) for piece in ranges}
        is_old = time.monotonic() - self._asked_at > BELIEVED_S
        if is_old or not wanted <= self._places.keys():
            topics = sorted({topic for topic, _ in wanted})
            self._places = self._offline(topics) if cluster is None else self._of(cluster, topics)
            self._asked_at = time.monotonic()
        return [
            piece._replace(place=self._places.get((piece.topic, piece.partition)))
            for piece in ranges
        ]

    def _offline(self, topics: Iterable[str]) -> dict[tuple[str, int], Place | None]:
        path = self._scan.path or ""
        try:
            found = Folders(path)
            return {
                (topic, partition): Place(tuple(split_path(path)), found.topic_id(topic))
                for topic in topics
                for partition in found.partitions(topic)
            }
        except OfflineError as error:
            raise SourceError(str(error)) from None

    def _of(self, cluster: Cluster, topics: list[str]) -> dict[tuple[str, int], Place | None]:
        refusals: list[str] = []
        places: dict[tuple[str, int], Place | None] = {}
        try:
            told = cluster.metadata(topics)
        except ClientError as error:
            refusals.append(str(error))
        else:
            path = self._scan.path
            if path is not None:
                owners = [_owner(path, told.cluster_id or "")]
            else:
                owners = _on_this_machine(cluster, told, refusals)
            places = _places(told, owners)
        if self._scan.read_mode == "local" and not any(places.values()):
            why = "; ".join(refusals) or "another broker leads the partitions"
            raise SourceError(
                f"readMode=local: {why}. Name the data folders with path, or use readMode=auto,"
                " which asks the broker"
            )
        return places


def folders_here(cluster: Cluster) -> list[str]:
    """The data folders of all brokers on this machine, as they say. Raises SourceError."""
    refusals: list[str] = []
    try:
        owners = _on_this_machine(cluster, cluster.metadata([]), refusals)
    except ClientError as error:
        raise UnansweredError(str(error)) from None
    if not owners:
        raise SourceError("; ".join(refusals) or "no broker says where its data folders are")
    return [folder for owner in owners for folder in owner.folders]


def _places(
    told: MetadataResponse, owners: Sequence[_Owner]
) -> dict[tuple[str, int], Place | None]:
    places: dict[tuple[str, int], Place | None] = {}
    by_node: Mapping[int, _Owner] = {owner.node_id: owner for owner in owners}
    for topic in told.topics:
        if topic.error_code or topic.name is None or topic.topic_id == NO_TOPIC_ID:
            continue
        for row in topic.partitions:
            owner = by_node.get(row.leader_id)
            if owner is None and len(row.replica_nodes) == 1:
                owner = by_node.get(ANY_NODE)  # there is no other copy that it could be
            place = None if owner is None else Place(owner.folders, topic.topic_id)
            places[topic.name, row.partition_index] = place
    return places


def _owner(path: str, cluster_id: str) -> _Owner:
    """Raises SourceError if the folders are somebody else's. They need not be on the driver."""
    folders = tuple(split_path(path))
    if not folders:
        raise SourceError(f"path={path!r} names no data folder")
    node_ids = set()
    for folder in folders:
        meta = _meta(folder)
        if meta is None:
            continue
        if meta.cluster_id and cluster_id and meta.cluster_id != cluster_id:
            raise SourceError(
                f"path={folder} belongs to cluster {meta.cluster_id}, and kafka.bootstrap.servers"
                f" to {cluster_id}: correct one of them"
            )
        node_ids.add(meta.node_id)
    if len(node_ids) > 1:
        raise SourceError(f"path={path} names the folders of several brokers: name those of one")
    return _Owner(folders, node_ids.pop() if node_ids else ANY_NODE)


def _on_this_machine(cluster: Cluster, told: MetadataResponse, refusals: list[str]) -> list[_Owner]:
    owners: list[_Owner] = []
    for broker in told.brokers:
        try:
            client = cluster.connection(broker.node_id)
            if client.sock.getpeername()[0] != client.sock.getsockname()[0]:
                refusals.append(f"broker {broker.node_id} is on another machine")
                continue
            answer: DescribeLogDirsResponse = cluster.call(
                DescribeLogDirsRequest(topics=[]), node_id=broker.node_id
            )
        except (ClientError, OSError) as error:
            refusals.append(f"broker {broker.node_id} does not say where its folders are: {error}")
            continue
        folders = [row.log_dir for row in answer.results if not row.error_code]
        ours = [folder for folder in folders if _is_ours(folder, told.cluster_id or "")]
        if ours:
            owners.append(_Owner(tuple(ours), broker.node_id))
        else:
            named = ", ".join(folders) or "none"
            refusals.append(f"the folders of broker {broker.node_id} cannot be read here: {named}")
    return owners


def _is_ours(folder: str, cluster_id: str) -> bool:
    """A folder of that name may be here and be another's, as where the broker is in a container."""
    if not os.path.isabs(folder) or not os.access(folder, os.R_OK | os.X_OK):  # noqa: PTH117
        return False
    meta = _meta(folder)
    return meta is not None and bool(cluster_id) and meta.cluster_id == cluster_id


def _meta(folder: str) -> MetaProperties | None:
    path = f"{folder}/{META_PROPERTIES}"
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return decode_meta(file.read(), path)
    except (OSError, RunnelError):
        return None
