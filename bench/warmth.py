"""What happens before the first round, so that it is like all others.

On a virtual machine the first touch of memory costs several times its reuse, because the host has
yet to give it: a file as large as the run's live data is written and deleted twice, and the run
says how fast each was. Then every broker gets the same load for the same time, unmeasured.
"""

import itertools
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import groups, machine
from bench.commits import Commits, commit_offsets
from bench.members import ClassicMember, ConsumerMember
from bench.model import Scale, Target
from bench.transactions import Transactions, commit_transactions
from runnel.bench.suite import MEASURES, Size

WARM_UP_S = 30.0
WARM_UP_SIZE = Size(seconds=1.0, megabytes=100, samples=500)
COORDINATOR_LOAD_S = 4.0  # a JVM gets faster for many seconds of the same
LIVE_LOADS = 3  # deleted topics of the targets before this one may still lie in memory
SPARE_BYTES = 2_000_000_000  # loads whose size does not follow the scale


def warm_page_cache_twice(
    folder: Path, scale: Scale, megabytes: int | None = None
) -> dict[str, object]:
    """By as many megabytes as the run will need, unless told otherwise."""
    size_bytes = LIVE_LOADS * scale.megabytes * 1_000_000 + SPARE_BYTES
    if megabytes is not None:
        size_bytes = megabytes * 1_000_000
    return {
        "warmed_bytes": size_bytes,
        "first_touch_mbps": machine.warm_page_cache(folder, size_bytes),
        "warm_mbps": machine.warm_page_cache(folder, size_bytes),
    }


def spelled(facts: Mapping[str, object]) -> str:
    size_bytes, first, then = (
        facts[name] for name in ("warmed_bytes", "first_touch_mbps", "warm_mbps")
    )
    assert isinstance(size_bytes, int) and isinstance(first, float) and isinstance(then, float)
    return (
        f"page cache warmed by a file of {size_bytes / 1e6:,.0f} MB, written and deleted twice:"
        f" {first:,.0f} MB/s, then {then:,.0f}"
    )


def warm_coordinators(target: Target, seconds: float) -> None:
    """Commits, transactions and rebalances in turn, until the time is over."""
    address, deadline = target.address, time.monotonic() + seconds
    loads: tuple[Callable[[], object], ...] = (
        lambda: commit_offsets(address, Commits(), seconds=COORDINATOR_LOAD_S),
        lambda: commit_transactions(address, Transactions(), seconds=COORDINATOR_LOAD_S),
        lambda: groups.rebalance(address, ClassicMember, pid=None),
        lambda: groups.rebalance(address, ConsumerMember, pid=None),
    )
    for load in itertools.cycle(loads):
        if time.monotonic() >= deadline:
            break
        load()


def warm_up(target: Target, seconds: float) -> None:
    """Produce, fetch and latencies in turn, until the time is over."""
    deadline = time.monotonic() + seconds
    for measure in itertools.cycle(MEASURES):
        if time.monotonic() >= deadline:
            break
        for _line in measure(target.address, WARM_UP_SIZE):
            pass  # nobody counts these
