"""The cluster's topics as groups see them: what is there to be assigned."""

from collections.abc import Iterable
from typing import Protocol


class TopicsView(Protocol):
    """As of now; asked again whenever something is decided."""

    @property
    def revision(self) -> int:
        """Another number if any topic may have changed."""

    def names(self) -> Iterable[str]: ...
    def partition_count(self, topic: str) -> int:
        """0 if there is no such topic."""

    def id_of(self, topic: str) -> bytes | None: ...
    def name_of(self, topic_id: bytes) -> str | None: ...
    def racks_of(self, topic: str, index: int) -> frozenset[str]:
        """Where its replicas stand."""
