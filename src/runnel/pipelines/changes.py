"""Changes of rows, and the last one of each key: what a table with one row per key is made of.

A change that came from a database is ordered by the database's own time and position, so that
neither repeats nor stragglers matter; then, and where there is neither, by the record's offset.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

UPSERT: Final = "u"
DELETE: Final = "d"
TOMBSTONE: Final = "t"  # a delete that knows its offset only


class Order(NamedTuple):
    ts_ms: int
    position: str  # sorts as text
    offset: int


class Change(NamedTuple):
    key: str  # JSON of the key's columns, always spelt the same
    op: str  # UPSERT, DELETE or TOMBSTONE
    order: Order
    row: str  # JSON of the row; of a delete, of its key's columns
    topic: str = ""  # with the partition and the offset: which record said so
    partition: int = 0


def latest(changes: Iterable[Change]) -> dict[str, Change]:
    """The change of each key that counts. They come in the order of their partitions' offsets.

    A tombstone follows the delete that it belongs to and says nothing new. One without a delete
    before it, as compaction of the topic may leave, deletes whatever came before it.
    """
    last: dict[str, Change] = {}
    previous: dict[str, str] = {}
    for change in changes:
        before = last.get(change.key)
        after_delete = previous.get(change.key) == DELETE
        previous[change.key] = change.op
        if change.op == TOMBSTONE:
            if after_delete:
                continue
            if before is not None and before.op != TOMBSTONE:
                order = before.order._replace(offset=change.order.offset)
                change = change._replace(op=DELETE, order=order)
            last[change.key] = change
        elif before is None or before.op == TOMBSTONE or change.order > before.order:
            last[change.key] = change
    return last
