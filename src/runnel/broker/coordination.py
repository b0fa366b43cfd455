"""The group and the transaction coordinators of one broker, wired: what they are given, and told.

Their machines and the writer of markers are imported before the first shard is opened: a start
without groups or transactions need not pay for them.
"""

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from runnel.broker.coordinators import Coordinators, TimerLoop
from runnel.broker.group_topics import GroupTopics
from runnel.broker.internal_topics import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    consumer_offsets,
    transaction_state,
)
from runnel.broker.partition import Partition
from runnel.broker.partitions import Partitions
from runnel.broker.waiting import Waiting
from runnel.cluster.features import TRANSACTION_VERSION, level_of
from runnel.cluster.image import Image
from runnel.config.settings import Settings
from runnel.coordinator.runtime import Shard
from runnel.coordinator.timers import Timers
from runnel.ports import Clock, Workers

if TYPE_CHECKING:  # see above
    from runnel.broker.markers import Markers
    from runnel.coordinator.groups.machine import GroupMachine
    from runnel.coordinator.transactions.machine import TransactionMachine


class Coordination:
    """Owned by the broker. What is given as a function is asked whenever it is needed."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        image: Callable[[], Image],
        take_producer_id: Callable[[], int],
        partitions: Partitions,
        clock: Clock,
        chance: random.Random,
        workers: Workers,
        waiting: Waiting,
    ) -> None:
        self._settings = settings
        self._image = image
        self._take_producer_id = take_producer_id
        self._partitions = partitions
        self._clock = clock
        self._random = chance
        self._waiting = waiting
        self._markers: Markers | None = None
        timers = Timers()
        self._timer_loop = TimerLoop(timers, clock, asyncio.get_running_loop())
        self.groups = Coordinators(
            CONSUMER_OFFSETS,
            lambda: consumer_offsets(settings(), image()),
            self._import_groups,
            clock,
            timers,
            workers,
            waiting,
        )
        self.transactions = Coordinators(
            TRANSACTION_STATE,
            lambda: transaction_state(settings(), image()),
            self._import_transactions,
            clock,
            timers,
            workers,
            waiting,
        )
        partitions.on_role = self._role_changed

    def image_changed(self, old: Image, new: Image) -> None:
        for coordinators in (self.groups, self.transactions):
            topic = new.topics.get(coordinators.topic)
            coordinators.count_changed(0 if topic is None else len(topic.partitions))
        if new.topics_revision != old.topics_revision:
            self._tell_groups_of_deletions(old, new)

    def _tell_groups_of_deletions(self, old: Image, new: Image) -> None:
        deleted = {
            topic.name: topic.id
            for topic in old.topics_by_id.values()
            if topic.id not in new.topics_by_id
        }
        if deleted:
            for shard in self.groups:
                shard.machine.topics_deleted(deleted)

    def _role_changed(self, partition: Partition) -> None:
        topic = partition.topic_partition.topic
        if topic == CONSUMER_OFFSETS:
            self.groups.role_changed(partition)
        elif topic == TRANSACTION_STATE:
            self.transactions.role_changed(partition)

    def _import_groups(self) -> "Callable[[Shard[GroupMachine]], GroupMachine]":
        from runnel.coordinator.groups.machine import GroupMachine

        topics = GroupTopics(self._image)
        return lambda shard: GroupMachine(
            shard, lambda: self._settings().groups, topics, self._random, topics.configs_of
        )

    def _import_transactions(self) -> "Callable[[Shard[TransactionMachine]], TransactionMachine]":
        _import_markers()  # they will be needed, too
        from runnel.coordinator.transactions.machine import TransactionMachine

        return lambda shard: TransactionMachine(
            shard,
            lambda: self._settings().transactions,
            lambda: level_of(self._image().features, TRANSACTION_VERSION),
            self._take_producer_id,
            self.markers(),
        )

    def markers(self) -> "Markers":
        if self._markers is None:
            self._markers = _import_markers()(
                self._partitions, self.groups, self._image, self._clock, self._waiting
            )
        return self._markers

    def stop(self) -> None:
        self._timer_loop.stop()
        if self._markers is not None:
            self._markers.stop()


def _import_markers() -> "type[Markers]":
    from runnel.broker.markers import Markers

    return Markers
