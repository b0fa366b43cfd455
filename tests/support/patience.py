"""Waits for what comes by itself, however slow the machine is just now."""

import time
from collections.abc import Callable

PATIENCE_S = 30.0
LOOK_EVERY_S = 0.02


def eventually(is_so: Callable[[], bool]) -> None:
    """Raises AssertionError if it is not so after `PATIENCE_S`."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"not within {PATIENCE_S:g} s"
        time.sleep(LOOK_EVERY_S)
