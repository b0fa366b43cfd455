"""The outside world as the core sees it, implemented by the operating system and the simulator.

Nothing below `broker` reads a clock, draws a random number, opens a file or asks the metadata
store except through one of these.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Literal, NamedTuple, Protocol, TypeVar

S = TypeVar("S")
T = TypeVar("T")
Readable = bytes | bytearray | memoryview


class Clock(Protocol):
    """Wall time may jump; monotonic time never does. Deadlines use the second alone."""

    def wall_ms(self) -> int: ...
    def monotonic_ms(self) -> int: ...


class Workers(Protocol):
    """Blocking work (fsync, decompression) off the loop: a thread, or inline on virtual time."""

    async def run(self, work: Callable[[], T]) -> T: ...

    def map(self, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        """Side by side and blocking: for work that is in a worker already."""


class File(Protocol):
    """A file written only at explicit positions, so that a failed write changes no state."""

    path: str

    def fileno(self) -> int:
        """The descriptor for `sendfile`, or -1 where there is none (the simulator)."""

    def write_at(self, position: int, data: Readable) -> int:
        """Bytes written, which may be fewer than given. Raises OSError."""

    def write_on_loop(self, position: int, data: Readable) -> int:
        """As `write_at`, for the loop: no worker gets the interpreter while little is written."""

    def read_at(self, position: int, size: int) -> bytes:
        """Fewer bytes than asked for only at the end of the file. Raises OSError."""

    def read_cached(self, position: int, size: int) -> Readable | None:
        """As `read_at`, or None if some of it would have to come from the disk."""

    def is_cached(self, position: int, size: int) -> bool:
        """Whether reading would not wait for the disk, as far as a few samples tell."""

    def begin_to_warm(self, position: int, size: int, *, reads_ahead: bool) -> None:
        """Have the system read into the page cache, and do not wait for it. Raises OSError."""

    def warm(self, position: int, size: int) -> None:
        """Read into the page cache and wait for it: only ever in a worker. Raises OSError."""

    def let_go(self, position: int, size: int) -> None:
        """Have the system write out and forget these bytes soon; nothing is durable by that."""

    def reserve(self, size: int) -> None:
        """Space on the disk for so many bytes; the file's size stays. Only a hint: never raises."""

    def sync(self) -> None: ...
    def truncate(self, size: int) -> None: ...
    def size(self) -> int: ...
    def close(self) -> None: ...


class Space(NamedTuple):
    total_bytes: int
    usable_bytes: int


class Disk(Protocol):
    """A folder tree. Names are durable only after `sync_dir` of the folder that holds them."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Raises FileNotFoundError unless `create`."""

    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> Sequence[str]:
        """Names in a folder, sorted."""

    def make_dir(self, path: str) -> None:
        """Creates parents too; an existing folder is fine."""

    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None:
        """Atomic, replaces an existing file."""

    def sync_dir(self, path: str) -> None: ...
    def read_whole(self, path: str) -> bytes:
        """A small file. Raises FileNotFoundError."""

    def size(self, path: str) -> int:
        """Raises FileNotFoundError."""

    def modified_ms(self, path: str) -> int: ...
    def space(self, path: str) -> Space:
        """Of the file system that holds the path. Raises OSError."""

    def tells_cached(self, path: str) -> bool:
        """Whether a file there knows what is cached; otherwise all counts as cached."""


class Journal(Protocol):
    """Where a coordinator writes what must survive: one partition that this broker leads."""

    @property
    def end_offset(self) -> int:
        """After all that was appended."""

    @property
    def committed_offset(self) -> int:
        """Before this, nothing can be lost any more: the high watermark."""

    @property
    def batch_bytes_max(self) -> int:
        """What is larger is refused: the topic's max.message.bytes."""

    def append(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """Keys and values in one batch, part of a transaction if the id is not -1.

        Raises RunnelError; then nothing was appended.
        """


MAX_TXN_OPERATIONS = 128  # compares and writes together; etcd's limit


class Compare(NamedTuple):
    """A condition of a transaction. A key that does not exist has version and revisions 0."""

    key: str
    target: Literal["mod_revision", "create_revision", "version", "value"]
    expected: int | bytes


class Put(NamedTuple):
    key: str
    value: bytes
    lease: int = 0


class Delete(NamedTuple):
    key: str


class Outcome(Enum):
    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # applied, or not, or applied yet to be: read again before deciding


class TxnResult(NamedTuple):
    outcome: Outcome
    revision: int  # of this transaction if OK, of the store if REFUSED, 0 if UNKNOWN


class Entry(NamedTuple):
    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int = 0


class Snapshot(NamedTuple):
    revision: int
    entries: Sequence[Entry]


class Change(NamedTuple):
    key: str
    entry: Entry | None  # None: deleted
    revision: int


class Changes(NamedTuple):
    """All that one revision changed under the watched prefix."""

    revision: int
    changes: Sequence[Change]


class Compacted(NamedTuple):
    """The watch asked for history that is gone: read everything again, then watch from there."""

    compact_revision: int


class MetadataStore(Protocol):
    """etcd's contract, the part we use. One revision per transaction; reads are linearizable.

    A store that does not answer gives UNKNOWN for a transaction, and RunnelError with
    REQUEST_TIMED_OUT for everything else.
    """

    async def txn(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> TxnResult:
        """All writes if all compares hold, else none. A key is written at most once.

        A deletion of what is not there changes nothing; a transaction that changes nothing is OK
        and makes no revision. A put under a lease that is gone is REFUSED.
        """

    async def read(self, prefix: str) -> Snapshot:
        """Every entry under the prefix, sorted by key, and the store's revision at that moment."""

    def watch(self, prefix: str, from_revision: int) -> AsyncGenerator[Changes | Compacted, None]:
        """Every revision from the given one on that changed something under the prefix, in order.

        Ends after Compacted, and when the store closes.
        """

    async def grant_lease(self, ttl_ms: int) -> int: ...
    async def keep_alive(self, lease: int) -> bool:
        """False: the lease is gone, with every key put under it."""

    async def revoke_lease(self, lease: int) -> None: ...
    async def close(self) -> None: ...
