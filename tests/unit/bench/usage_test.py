"""What a broker used: its own process and those below it, from a moment on."""

import os
import subprocess
import sys
import time

from runnel.bench.usage import Cost, Usage

# A child of its own that turns for a while, and a thread that sleeps often.
BUSY = """
import subprocess, sys, threading, time
def sleep_often():
    while True:
        time.sleep(0.001)
threading.Thread(target=sleep_often, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "sum(range(20_000_000)); print(1); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
input()
child.communicate(b"\\n")
"""


def test_children_and_threads_are_counted() -> None:
    """Goal: CPU of a child and context switches of a thread that is not the first are seen."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        usage = Usage(process.pid)
        assert process.stdout is not None
        process.stdout.readline()
        cost = usage.cost()
        process.communicate(b"\n")
    assert cost is not None
    assert cost.cpu_s > 0.1
    assert cost.switches > 100
    assert cost.rss_mb > 10


def test_time_asleep_costs_nothing() -> None:
    usage = Usage(os.getpid())
    time.sleep(0.05)
    cost = usage.cost()
    assert cost is not None
    assert cost.cpu_s < 0.05
    assert cost.switches >= 1


def test_nothing_is_known_of_an_unknown_process() -> None:
    assert Usage(None).cost() is None


def test_hundredths_of_a_second_stay_what_they_are() -> None:
    assert Cost(0.07000000000000028, 0.030000000000001137, 0, 1.0).cpu_s == 0.1
