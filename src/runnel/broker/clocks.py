"""The system's clocks in milliseconds: compiled where that was built, Python's own elsewhere.

Every request asks for the time, some of them three times.
"""

import time
from collections.abc import Callable
from typing import Final

try:
    from runnel.broker import _clock as _compiled  # type: ignore[attr-defined]  # only where built
except ImportError:
    _compiled = None

BOOT_TIME: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _boot_ms() -> int:
    return time.clock_gettime_ns(BOOT_TIME) // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


# Goes on while the machine is suspended.
boot_ms: Final[Callable[[], int]] = _compiled.boot_ms if _compiled else _boot_ms
wall_ms: Final[Callable[[], int]] = _compiled.wall_ms if _compiled else _wall_ms
