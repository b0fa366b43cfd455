"""What is to be replayed of a journal, in its order: its records and markers.

Of several records outside transactions with one key of a `straight` kind only the last is a step,
unless something else stands between them: until then they are in `last`, by their key. And every
tombstone is one, because that ends what such records in transactions wait for, too.
"""

from collections.abc import Container
from typing import Final

from runnel.native.columns import ControlType

_KIND_BYTES: Final = 2  # of a key, which say what record it is

# A key or a marker, a value, the producer's id or -1.
Step = tuple[bytes | ControlType, bytes | None, int]


def add_record(
    key: bytes,
    value: bytes | None,
    producer_id: int,
    straight: Container[bytes],
    last: dict[bytes, bytes],
    steps: list[Step],
) -> None:
    if producer_id < 0 and key[:_KIND_BYTES] in straight:
        if value is not None:
            last[key] = value
        else:
            last.pop(key, None)
            steps.append((key, None, producer_id))
    else:
        give_last(last, steps)
        steps.append((key, value, producer_id))


def give_last(last: dict[bytes, bytes], steps: list[Step]) -> None:
    if last:
        steps += [(key, value, -1) for key, value in last.items()]
        last.clear()
