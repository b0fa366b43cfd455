"""The image's topics as the group coordinator sees them: `coordinator.groups.TopicsView`."""

from collections.abc import Callable, Iterable

from runnel.cluster.image import Image
from runnel.types import TopicId


class GroupTopics:
    __slots__ = ("_image",)

    def __init__(self, image: Callable[[], Image]) -> None:
        self._image = image

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
