"""Idle processors do not halt while the latency of a broker at rest is measured.

A virtual processor that has nothing to do is given back to the host, and to get it again for the
thread that a message woke takes 25 to 30 us here: half of a record's way from producer to consumer,
whatever broker is between them. Linux lets a process ask that idle processors stay awake, and its
own tool for latencies, cyclictest, asks for it as well. Every broker is measured so (ADR 57).
"""

import contextlib
import os
import struct
from collections.abc import Iterator

DEVICE = "/dev/cpu_dma_latency"  # holds for as long as it is open; root's alone
NO_LATENCY = struct.pack("i", 0)  # microseconds that waking up may take


@contextlib.contextmanager
def awake(device: str = DEVICE) -> Iterator[bool]:
    """Whether it was allowed. Where it is not, processors idle as they do."""
    try:
        fd = os.open(device, os.O_WRONLY)
    except OSError:
        yield False
        return
    try:
        os.write(fd, NO_LATENCY)
        yield True
    finally:
        os.close(fd)


def told(device: str = DEVICE) -> str:
    """For the head of a run's table."""
    with awake(device) as was_allowed:
        if was_allowed:
            return "idle processors are kept awake while latency at rest is measured"
    return f"idle processors halt, also while latency at rest is measured: no {device} for us"
