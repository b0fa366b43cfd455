"""What a coordinator asks of the partitions of a transaction that is decided."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from runnel.coordinator.runtime import Shard
from runnel.types import TopicPartition


class Ending(NamedTuple):
    """How the transaction of a producer ended. The epoch is the one that its marker carries."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    coordinator_epoch: int
    bumped_epoch: bool  # the marker's epoch is one that no data of this transaction has (KIP-890)


class MarkerWriter(Protocol):
    """Owned by the broker. Partitions of other brokers will be reached through it, too."""

    def write(self, shard: Shard[Any], ending: Ending, done: Callable[[], None]) -> None:
        """Once all that the shard has written is committed, put a marker in every partition.

        `done` is called when all of these are committed: at once if nothing needs to be waited
        for, never if the shard is closed meanwhile. Partitions that are not there for the moment
        are tried again for as long as it takes; those of deleted topics are left out.
        """
