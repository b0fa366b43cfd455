"""Where received bytes live: one buffer for the whole loop, and pooled ones for unfinished frames.

Whole frames are handled inside the shared buffer, so an idle connection holds no memory at all.
A frame that arrives in pieces moves to a held buffer, which grows as bytes arrive and never to
the size that a peer merely declared. Held bytes are counted against one budget.
"""

from typing import Final

SHARED_BYTES: Final = 128 * 1024  # what of a large frame comes this way is copied once
SMALLEST_HELD_BYTES: Final = 64 * 1024
POOLED_BYTES_MAX: Final = 16 * 1024 * 1024
POOLED_BUFFER_BYTES_MAX: Final = 4 * 1024 * 1024


class ReceiveBuffers:
    """Owned by the loop. `shared` is valid only until the handler of its last frame returns."""

    __slots__ = ("_free", "budget_bytes", "held_bytes", "pooled_bytes", "shared")

    def __init__(self, budget_bytes: int) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self.pooled_bytes = 0
        self._free: dict[int, list[memoryview]] = {}

    def exhausted(self) -> bool:
        return self.held_bytes >= self.budget_bytes

    def take(self, size: int) -> memoryview:
        """A buffer of at least `size` bytes, from the pool where it has one."""
        capacity = max(SMALLEST_HELD_BYTES, 1 << (size - 1).bit_length())
        free = self._free.get(capacity)
        if free:
            buffer = free.pop()
            self.pooled_bytes -= capacity
        else:
            buffer = memoryview(bytearray(capacity))
        self.held_bytes += capacity
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        capacity = len(buffer)
        self.held_bytes -= capacity
        if capacity <= POOLED_BUFFER_BYTES_MAX and self.pooled_bytes + capacity <= POOLED_BYTES_MAX:
            self._free.setdefault(capacity, []).append(buffer)
            self.pooled_bytes += capacity
