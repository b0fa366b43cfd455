"""Memory of a Spark worker that was freed is kept for the next batch of rows.

A batch of Arrow buffers takes some megabytes and lives for milliseconds. By default the C library
hands such memory back to the kernel, which gives it out again page by page, all zeros: that took
half of the time of a scan of records of 100 bytes (10 million rows a second of processor time
instead of 20). So a worker keeps up to `KEPT_BYTES` of what it has freed.
"""

import ctypes
from contextlib import suppress
from functools import cache
from typing import Final

KEPT_BYTES: Final = 256 << 20
LARGE_BYTES: Final = 32 << 20  # the most that glibc allows: from here on each has its own mapping
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


@cache
def keep_freed() -> None:
    """Once per process; other C libraries than glibc have no such setting, and that is no error."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
