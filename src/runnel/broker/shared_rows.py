"""Writes rows and names into the file that the exporter maps, as `exporter/layout.py` has it."""

from mmap import mmap
from struct import Struct

from runnel.exporter.layout import NAME_BYTES_MAX, NAMES, Slot, Table
from runnel.metrics import Metrics

NO_ROW = -1


class SharedRows:
    """One table. Rows are taken and given back; the exporter looks at those below `used`."""

    def __init__(self, shared: mmap | bytearray, table: Table, metrics: Metrics) -> None:
        self._table = table
        self._metrics = metrics
        self._sequences = memoryview(shared)[table.at : table.rows_at].cast("q")
        self._rows = memoryview(shared)[table.rows_at : table.end]
        self._row_bytes = table.row_bytes
        self._pack_into = Struct(f"={table.row_words}q").pack_into
        self._free: list[int] = []

    def take(self) -> int:
        """A row to write to; NO_ROW if there is none."""
        if self._free:
            return self._free.pop()
        slots, used = self._metrics.slots, self._table.used
        row = slots[used]
        if row >= self._table.row_count_max:
            return NO_ROW
        slots[used] = row + 1
        return row

    def write(self, row: int, *numbers: int) -> None:
        self._sequences[row] += 1
        self._pack_into(self._rows, row * self._row_bytes, *numbers)
        self._sequences[row] += 1

    def write_bytes(self, row: int, data: bytes) -> None:
        at = row * self._row_bytes
        self._sequences[row] += 1
        self._rows[at : at + len(data)] = data
        self._sequences[row] += 1

    def give_back(self, row: int) -> None:
        self.write_bytes(row, bytes(self._row_bytes))
        self._free.append(row)


class SharedNames:
    """Names by number, for as long as somebody uses them. A number is never given twice."""

    def __init__(self, shared: mmap | bytearray, metrics: Metrics) -> None:
        self._rows = SharedRows(shared, NAMES, metrics)
        self._head = Struct("=qq")
        self._known: dict[str, list[int]] = {}  # number, row, uses
        self._last = 0

    def take(self, name: str) -> int:
        """Its number; 0 if there is no room for one more."""
        known = self._known.get(name)
        if known is None:
            row = self._rows.take()
            if row == NO_ROW:
                return 0
            self._last += 1
            known = self._known[name] = [self._last, row, 0]
            text = shortened(name)
            self._rows.write_bytes(row, self._head.pack(self._last, len(text)) + text)
        known[2] += 1
        return known[0]

    def give_back(self, name: str) -> None:
        known = self._known[name]
        known[2] -= 1
        if not known[2]:
            self._rows.give_back(known[1])
            del self._known[name]


def shortened(name: str) -> bytes:
    """As UTF-8 that fits. What does not is cut, and told from others by a hash of the whole."""
    text = name.encode("utf-8", "replace")
    if len(text) <= NAME_BYTES_MAX:
        return text
    from hashlib import sha256

    mark = "..." + sha256(text).hexdigest()[:16]
    kept = text[: NAME_BYTES_MAX - len(mark)].decode("utf-8", "ignore")
    return (kept + mark).encode()


def write_facts(metrics: Metrics, facts: dict[tuple[str, str], str]) -> None:
    """Before the exporter starts. Whatever has no room is left out, whole lines of it."""
    from runnel.exporter.layout import FACTS_AT, FACTS_BYTES_MAX

    assert metrics.shared is not None
    data = b""
    for (kind, key), text in facts.items():
        line = f"{kind}\t{key}\t{' '.join(text.split())}\n".encode()
        if len(data) + len(line) <= FACTS_BYTES_MAX:
            data += line
    metrics.shared[FACTS_AT : FACTS_AT + len(data)] = data
    metrics.slots[Slot.FACTS_BYTES] = len(data)
