"""What a broker and the process that rewrites its logs say to each other: length, then pickle.

Nobody else can write into the two pipes, so what comes out of them is what was put in.
"""

import pickle
from typing import IO, Final, NamedTuple

from runnel.storage.cleaning_plan import CleaningPlan
from runnel.storage.rewriting import Cleaned

LENGTH_BYTES: Final = 4


class Message(NamedTuple):
    """One of the three, or none of them: then the plan is carried out."""

    cleaned: Cleaned | None = None
    failed: tuple[int, str] | None = None  # of a RunnelError
    os_error: tuple[int, str] | None = None


def write_message(stream: IO[bytes], message: Message | CleaningPlan) -> None:
    data = pickle.dumps(message)
    stream.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    stream.flush()


def read_message(stream: IO[bytes]) -> object:
    """None at the end."""
    size = int.from_bytes(stream.read(LENGTH_BYTES), "big")
    data = stream.read(size) if size else b""
    return pickle.loads(data) if size and len(data) == size else None
