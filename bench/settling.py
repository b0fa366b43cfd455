"""Waits until no broker has work left over, so that a cell does not pay for the one before.

Deleted topics are gigabytes of page cache that some thread gives back a second later, and a JVM
compiles what it has just run: on two cores that is seen in the tail of anybody's latency.
"""

import time
from collections.abc import Sequence

from bench.model import Target
from runnel.bench.usage import Usage

LOOK_S = 0.25
QUIET_CPU_S = 0.02  # of all brokers together in that time
WAIT_S_MAX = 5.0
# Deleted files are removed after a second, and Runnel has let processors sleep again (vigil.py):
# it may be stopped next, and who is stopped lets go of nothing.
LEFT_OVER_S = 1.0


def settle(targets: Sequence[Target]) -> float:
    """Returns the seconds that it waited."""
    started = time.monotonic()
    time.sleep(LEFT_OVER_S)
    while time.monotonic() - started < WAIT_S_MAX:
        usages = [Usage(target.pid) for target in targets]
        time.sleep(LOOK_S)
        costs = [usage.cost() for usage in usages]
        if sum(cost.cpu_s for cost in costs if cost is not None) <= QUIET_CPU_S:
            break
    return time.monotonic() - started
