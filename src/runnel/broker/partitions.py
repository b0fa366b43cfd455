"""Every partition this broker holds, and the path from a new image to open logs.

The image says what should be; `reconcile` makes it so, one image after the other, and publishes
a partition only when its log is open and its role is clear.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from runnel.broker.flusher import Flusher
from runnel.broker.inspection import is_needed
from runnel.broker.log_fields import about
from runnel.broker.partition import Partition
from runnel.broker.waiting import Waiting
from runnel.cluster.image import Image, Topic
from runnel.cluster.values import Partition as PartitionRecord
from runnel.config.overrides import topic_config
from runnel.config.settings import Settings
from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock
from runnel.storage.log import Log
from runnel.storage.store import LogStore
from runnel.types import NO_TOPIC_ID, TopicPartition

_log = logging.getLogger(__name__)
_SPREAD: Final = 1_000_003
_FINGERPRINT_MASK: Final = 2**30 - 1  # compiled, larger numbers are multiplied as objects
CREATED_AT_ONCE: Final = 8  # each takes some hundred microseconds of the loop


class Partitions:
    """Owned by the broker. Lookups are two subscripts, because they are on the data path."""

    __slots__ = (
        "_applied",
        "_applied_changed",
        "_by_topic",
        "_clock",
        "_failed",
        "_flusher",
        "_id",
        "_image_changed",
        "_logs",
        "_settings",
        "_settings_changed",
        "_waiting",
        "_wanted",
        "inspected",
        "on_role",
        "topic_names",
    )

    def __init__(
        self,
        logs: LogStore,
        settings: Settings,
        clock: Clock,
        waiting: Waiting,
        flusher: Flusher,
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._settings_changed = False
        self._id = settings.node_id
        self._clock = clock
        self._waiting = waiting
        self._flusher = flusher
        self._by_topic: dict[str, dict[int, Partition]] = {}
        # Logs that could not be opened, and why not.
        self._failed: dict[tuple[str, int], tuple[ErrorCode, str]] = {}
        self._wanted = self._applied = Image()
        self._image_changed = asyncio.Event()
        self._applied_changed = asyncio.Event()
        # Names and ids of topics of which produce must ask more; those that need it no more stay.
        self.inspected: set[str | bytes] = set()
        self.topic_names: dict[bytes, str] = {}
        self.on_role: Callable[[Partition], None] = lambda _partition: None

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_topic.values():
            yield from partitions.values()

    def by_topic(self) -> Iterator[list[Partition]]:
        """The same, for who has others take turns meanwhile: topics may come and go."""
        for topic in list(self._by_topic):
            yield list(self._by_topic.get(topic, {}).values())

    def __len__(self) -> int:
        return sum(map(len, self._by_topic.values()))

    def get(self, topic: str, index: int) -> Partition:
        try:
            return self._by_topic[topic][index]
        except KeyError:
            raise self._refusal(topic, index) from None

    def _refusal(self, topic: str, index: int) -> RunnelError:
        """Made anew each time: one that is raised again keeps the frames of every time before."""
        why = self._failed.get((topic, index))
        if why is not None:
            return RunnelError(*why)
        where = f"{topic}-{index} is not on this broker"
        return RunnelError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, where)

    def find(self, topic: str, index: int) -> Partition | None:
        return self._by_topic.get(topic, {}).get(index)

    def name_of(self, topic_id: bytes) -> str:
        try:
            return self.topic_names[topic_id]
        except KeyError:
            raise RunnelError(ErrorCode.UNKNOWN_TOPIC_ID, topic_id.hex()) from None

    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        return {partition.topic_partition: partition.high_watermark for partition in self}

    def fingerprint(self) -> int:
        """Another number when an offset that is checkpointed has changed, or a log came or went.

        Asked every few seconds of ten thousand partitions, so it makes no objects; a number that
        comes twice by chance (one in 2**30) leaves a checkpoint too low, which costs a longer scan.
        """
        mixed = 0
        for partitions in self._by_topic.values():
            for partition in partitions.values():
                log = partition.log
                mixed = (mixed * _SPREAD + partition.high_watermark + 1) & _FINGERPRINT_MASK
                mixed = (mixed * _SPREAD + log.flushed_offset + 1) & _FINGERPRINT_MASK
                mixed = (mixed * _SPREAD + log.log_start_offset + 1) & _FINGERPRINT_MASK
        return mixed

    def warn_of_strays(self) -> None:
        """Logs of no topic: a crash came between a deletion and the end of its files."""
        for log in self._logs.logs:
            if self.find(log.topic, log.index) is None:
                _log.warning(
                    "%s holds no topic of this cluster: left alone",
                    log.folder,
                    extra=about(log.partition),
                )

    # Following the image

    def settings_changed(self, settings: Settings) -> None:
        """Every topic may inherit something else; the image that said so is to follow."""
        self._settings = settings
        self._settings_changed = True

    def image_changed(self, image: Image) -> None:
        self._wanted = image
        self._image_changed.set()

    async def follow_image(self, broker_epoch: int) -> None:
        """Runs as long as the broker: one image after the other, skipping those overtaken."""
        while True:
            await self._image_changed.wait()
            self._image_changed.clear()
            image = self._wanted
            await self._reconcile(self._applied, image, broker_epoch)
            self._applied = image
            self._applied_changed.set()
            self._applied_changed = asyncio.Event()

    async def caught_up_with(self, revision: int) -> None:
        """Until what this broker holds is what the image of that revision says."""
        while self._applied.revision < revision:
            await self._applied_changed.wait()

    async def _reconcile(self, old: Image, new: Image, broker_epoch: int) -> None:
        """Open, lead, follow and drop partitions so that what we hold is what the image says."""
        for topic in old.topics.values():
            if topic.id not in new.topics_by_id:
                await self._drop(topic)
        every, self._settings_changed = self._settings_changed, False
        if old.revision == 0:
            self._miss_offline_dirs(new)
        for topic in new.topics.values():
            if every or topic is not old.topics.get(topic.name):
                await self._open(topic, broker_epoch)

    def _miss_offline_dirs(self, image: Image) -> None:
        """At the start: what is missing is in a folder that is, and must not be made anew."""
        folders = ", ".join(self._logs.offline_dirs)
        if not folders:
            return
        on_disk = [
            topic
            for topic in image.topics.values()
            if topic_config(self._settings, topic.configs).storage != "memory"
        ]
        for topic in on_disk:
            for record in topic.partitions:
                partition = TopicPartition(topic.name, record.index)
                if self._id in record.replicas and self._logs.get(*partition) is None:
                    self._logs.keep_out(partition, f"{partition} is offline with {folders}")

    async def _open(self, topic: Topic, broker_epoch: int) -> None:
        mine = [record for record in topic.partitions if self._id in record.replicas]
        if not mine:
            return
        config = topic_config(self._settings, topic.configs)
        if is_needed(config):
            self.inspected |= {topic.name, topic.id}
        opened = dict(self._by_topic.get(topic.name, {}))
        for number, record in enumerate(mine):
            partition = opened.get(record.index)
            if partition is None:
                log = self._log_of(topic, record.index, config)
                if log is None:
                    continue
                partition = opened[record.index] = Partition(
                    log,
                    self._clock,
                    self._waiting,
                    self._flusher.touched,
                    self._flusher.request_within,
                )
            partition.configure(config)
            self._assume_role(partition, record, broker_epoch)
            if number % CREATED_AT_ONCE == CREATED_AT_ONCE - 1:
                await asyncio.sleep(0)
        self._by_topic[topic.name] = opened
        self.topic_names[topic.id] = topic.name

    def _log_of(self, topic: Topic, index: int, config: LogConfig) -> Log | None:
        """The log as it was found at the start, or a new one; None if the disk refuses it.

        A log of that name under another id is what a crash left of a deleted topic.
        """
        try:
            found = self._logs.get(topic.name, index)
            if found is not None and found.topic_id == NO_TOPIC_ID:
                self._logs.adopt(found, topic.id)
            elif found is not None and found.topic_id != topic.id:
                self._logs.delete(topic.name, index)
                found = None
            return found or self._logs.create(topic.name, topic.id, index, config)
        except RunnelError as error:
            self._failed[topic.name, index] = error.code, str(error)
            where = TopicPartition(topic.name, index)
            _log.error("%s cannot be opened: %s", where, error, extra=about(where))
            return None

    def _assume_role(
        self, partition: Partition, record: PartitionRecord, broker_epoch: int
    ) -> None:
        if record.is_led_by(self._id, broker_epoch):
            partition.lead(
                self._id,
                record.leader_epoch,
                in_sync_count=len(record.isr),
                min_in_sync=record.effective_min_isr,
            )
        else:
            partition.resign(record.leader, record.leader_epoch)
        self.on_role(partition)

    async def _drop(self, topic: Topic) -> None:
        partitions = self._by_topic.pop(topic.name, {})
        self.topic_names.pop(topic.id, None)
        self.inspected -= {topic.name, topic.id}
        for record in topic.partitions:
            self._failed.pop((topic.name, record.index), None)
        for partition in partitions.values():
            partition.drop()
            self.on_role(partition)
            self._flusher.forget(partition)
            try:
                self._logs.delete(topic.name, partition.log.index)
            except RunnelError as error:  # a folder that somebody took away is deleted enough
                where = partition.topic_partition
                _log.error("the files of a deleted log stay: %s", error, extra=about(where))
        _log.info(
            "topic %s deleted, %d partitions",
            topic.name,
            len(partitions),
            extra={"topic": topic.name},
        )
