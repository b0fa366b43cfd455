"""Who answers a read's questions: the brokers, or their data folders when there is no broker."""

import logging
from collections.abc import Collection, Mapping
from typing import Final

from runnel.arrow.errors import SourceError, UnansweredError
from runnel.arrow.offline import Folders, OfflineError
from runnel.spark.reads.assignment import Logs, TopicFound
from runnel.spark.reads.brokers import Brokers
from runnel.spark.reads.offsets import OffsetMap
from runnel.spark.reads.options import SourceOptions
from runnel.storage.checkpoints import encode_id
from runnel.types import NO_TOPIC_ID, TopicPartition

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state"})
_log: Final = logging.getLogger(__name__)


def open_logs(options: SourceOptions) -> Logs:
    """Raises SourceError, where only a folder can be asked and it cannot be read."""
    if "bootstrap.servers" not in options.client:
        assert options.path is not None, "checked with the options"
        return FolderLogs(options.path, read_committed=options.read_committed)
    return Brokers(options.client, read_committed=options.read_committed)


def open_logs_of_batch(options: SourceOptions) -> Logs:
    """With `path` also while no broker answers, unless `readMode=broker`. Raises SourceError."""
    logs = open_logs(options)
    if options.path is None or options.read_mode == "broker" or isinstance(logs, FolderLogs):
        return logs
    try:
        logs.topics([])
    except UnansweredError as error:
        logs.close()
        _log.warning("%s; %s is read without it", error, options.path)
        return FolderLogs(options.path, read_committed=options.read_committed)
    return logs


class FolderLogs:
    """The same questions, asked of files."""

    def __init__(self, path: str, *, read_committed: bool) -> None:
        self._committed = read_committed
        try:
            self._folders = Folders(path)
        except OfflineError as error:
            raise SourceError(str(error)) from None

    def topics(self, names: Collection[str] | None) -> list[TopicFound]:
        known = self._folders.topics()
        found = known if names is None else [name for name in known if name in names]
        return [self._topic(name) for name in found]

    def earliest(self, partitions: Collection[TopicPartition]) -> OffsetMap:
        return {at: self._ends(at)[0] for at in partitions}

    def latest(self, partitions: Collection[TopicPartition]) -> OffsetMap:
        return {at: self._ends(at)[1] for at in partitions}

    def at_timestamps(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        try:
            return {
                at: self._folders.offset_for_timestamp(
                    at.topic, at.index, timestamp_ms, read_committed=self._committed
                )
                for at, timestamp_ms in timestamps_ms.items()
            }
        except OfflineError as error:
            raise SourceError(str(error)) from None

    def bytes_of(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {}  # only streams ask, and those have a broker

    @property
    def cluster(self) -> None:
        return None

    def close(self) -> None:
        pass

    def _topic(self, name: str) -> TopicFound:
        topic_id = self._folders.topic_id(name)
        text = "" if topic_id == NO_TOPIC_ID else encode_id(topic_id)
        return TopicFound(name, text, self._folders.partitions(name), name in INTERNAL)

    def _ends(self, at: TopicPartition) -> tuple[int, int]:
        try:
            return self._folders.earliest_and_latest(
                at.topic, at.index, read_committed=self._committed
            )
        except OfflineError as error:
            raise SourceError(str(error)) from None
