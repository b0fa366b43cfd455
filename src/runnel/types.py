"""The few value types that every layer shares."""

from typing import Any, Final, NamedTuple

from runnel.ports import File

# The 16 raw bytes of a UUID, as on the wire: it hashes and compares at the speed of `bytes`, and
# the codec takes it out of a frame in the same call as its neighbours.
TopicId = bytes
NO_TOPIC_ID: Final[TopicId] = bytes(16)


class TopicPartition(NamedTuple):
    topic: str
    index: int  # type: ignore[assignment]  # Kafka's word, worth hiding tuple.index

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class FileSlice:
    """Bytes that stay in their file until the kernel sends them: `size` bytes from `position`.

    Never changed. A class and no tuple: several are made for each megabyte that is fetched, and a
    named tuple is made by interpreted code, wherever it is used.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def read(self) -> bytes:
        """The copying way, for transports that cannot hand a file to the kernel."""
        return self.file.read_at(self.position, self.size)


class Waitable:
    """Something that can move, and who waits for that (`broker/waiting.py`).

    `waiters` keeps insertion order, so that wakes are deterministic. A class and no protocol: of a
    class the compiled code knows where the field is, and an idle consumer is put into the lists of
    all its partitions, and taken out again, twice a second.
    """

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: dict[Any, None] = {}
