"""The few value types that every layer shares."""

from typing import NamedTuple
from uuid import UUID

from runnel.ports import File

NO_TOPIC_ID = UUID(int=0)


class TopicPartition(NamedTuple):
    topic: str
    index: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class FileSlice(NamedTuple):
    """Bytes that stay in their file until the kernel sends them: `size` bytes from `position`."""

    file: File
    position: int
    size: int

    def read(self) -> bytes:
        """The copying way, for transports that cannot hand a file to the kernel."""
        return self.file.read_at(self.position, self.size)
