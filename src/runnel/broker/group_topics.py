"""What the group coordinator sees of the image: `coordinator.groups.TopicsView`, and what was set
for a group by itself."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from runnel.cluster.image import NO_CONFIGS, Image
from runnel.types import TopicId

GROUP: Final = "group"  # a kind of owner of settings


class GroupTopics:
    __slots__ = ("_configs", "_configs_by_group", "_image")

    def __init__(self, image: Callable[[], Image]) -> None:
        self._image = image
        self._configs: object = None  # of the image that the next are of
        self._configs_by_group: dict[str, Mapping[str, str]] = {}

    @property
    def revision(self) -> int:
        return self._image().revision

    def names(self) -> Iterable[str]:
        return self._image().topics

    def partition_count(self, topic: str) -> int:
        found = self._image().topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def id_of(self, topic: str) -> bytes | None:
        found = self._image().topics.get(topic)
        return None if found is None else found.id

    def name_of(self, topic_id: bytes) -> str | None:
        found = self._image().topics_by_id.get(TopicId(topic_id))
        return None if found is None else found.name

    def racks_of(self, topic: str, index: int) -> frozenset[str]:
        image = self._image()
        found = image.topics.get(topic)
        if found is None or index >= len(found.partitions):
            return frozenset()
        brokers = (image.brokers.get(replica) for replica in found.partitions[index].replicas)
        return frozenset(each.rack for each in brokers if each is not None and each.rack)

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Most groups have none. Every heartbeat asks, and an image shares what did not change."""
        configs = self._image().configs
        if configs is not self._configs:
            self._configs = configs
            self._configs_by_group = {
                owner.name: found.values for owner, found in configs.items() if owner.kind == GROUP
            }
        return self._configs_by_group.get(group_id, NO_CONFIGS)
