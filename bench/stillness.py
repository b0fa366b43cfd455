"""Other brokers are stopped while the latency of one is measured.

One sample in a hundred is what a p99 is about, and a JVM that has nothing to do still wakes a few
hundred times a second. Whoever is measured shall have the machine as its users give it to it: for
itself. Both brokers are measured so.
"""

import contextlib
import signal
from collections.abc import Iterable, Iterator

import psutil

from bench.model import Target


@contextlib.contextmanager
def still(targets: Iterable[Target]) -> Iterator[None]:
    """Every process of these that the benchmark started is stopped, and goes on afterwards.

    Not for long: a Kafka that finds itself nine seconds late takes its broker for dead.
    """
    stopped: list[psutil.Process] = []
    try:
        for target in targets:
            if target.pid is not None and target.another is not None:
                stopped += _stop(target.pid)
        yield
    finally:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


def _stop(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    family = [parent, *parent.children(recursive=True)]
    for process in family:
        process.send_signal(signal.SIGSTOP)
    return family
