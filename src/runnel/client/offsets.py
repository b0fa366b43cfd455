"""What an offset means that is given to this library, said once.

**An offset is the place of the next message to read**, as everywhere in Kafka. Whoever has handled
the message at 41 commits 42, and whoever seeks to 42 gets the message at 42 next. So it is in
`commit`, `committed`, `seek`, `position` and in `Transaction`s; a message knows its `next_offset`.
Nobody has to add one anywhere else: `commit()` and `commit(message)` do it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from runnel.client.failures import ConfigurationError

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
UNKNOWN_OFFSET: Final = -1  # of a message that was not sent, or sent without acknowledgement


class TopicPartition(NamedTuple):
    """One partition of a topic. A plain pair `(topic, partition)` does as well."""

    topic: str
    partition: int


Partition = tuple[str, int]
Offsets = Mapping[Partition, int]


def checked(offsets: Offsets) -> dict[Partition, int]:
    for partition, offset in offsets.items():
        if not (isinstance(partition, tuple) and len(partition) == 2):
            raise ConfigurationError(
                f"offsets are given as {{(topic, partition): offset}}, not by {partition!r}"
            )
        if offset < 0:
            raise ConfigurationError(f"there is no offset {offset} in {partition[0]}")
    return dict(offsets)
