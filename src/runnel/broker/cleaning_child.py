"""The process that rewrites logs: `python -m runnel.broker.cleaning_child <pid of the broker>`.

Reads plans from its standard input and answers on its standard output with what is done, one
message for each new segment. It runs at low priority, and ends when its input does, or at once when
the broker is gone: two processes must never write the same files.
"""

import contextlib
import os
import select
import signal
import sys
import time
from typing import BinaryIO, Final

from runnel.broker.cleaning_messages import Message, read_message, write_message
from runnel.errors import RunnelError
from runnel.storage.cleaning_plan import CleaningPlan
from runnel.storage.files import OsDisk
from runnel.storage.rewriting import rewrite

NICE: Final = 10
_SET_DEATH_SIGNAL: Final = 1  # of prctl(2)
_CHECKED_EVERY_BYTES: Final = 4 << 20


class _Pace:
    """Keeps to so many bytes a second, and looks now and then whether the broker is there."""

    def __init__(self, bytes_per_second: float, parent: int) -> None:
        self._bytes_per_second = bytes_per_second
        self._parent = parent
        self._started = time.monotonic()
        self._bytes = 0
        self._unchecked = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        self._unchecked += size
        if self._unchecked >= _CHECKED_EVERY_BYTES:
            self._unchecked = 0
            _ensure_parent(self._parent)
        early = self._bytes / self._bytes_per_second - (time.monotonic() - self._started)
        if early > 0.001:
            time.sleep(early)
            _ensure_parent(self._parent)


def _ensure_parent(parent: int) -> None:
    poll = select.poll()
    poll.register(0, 0)  # an end of the input is always told
    if os.getppid() != parent or any(event & select.POLLHUP for _, event in poll.poll(0)):
        os._exit(0)


def _end_with(parent: int) -> None:
    """Linux ends this process with its parent, however that ends; elsewhere `_Pace` notices."""
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    _ensure_parent(parent)


def _carry_out(plan: CleaningPlan, parent: int, answers: BinaryIO) -> None:
    try:
        pace = _Pace(plan.limits.bytes_per_second, parent)
        for cleaned in rewrite(OsDisk(), plan, pace):
            write_message(answers, Message(cleaned=cleaned))
        write_message(answers, Message())
    except RunnelError as error:
        write_message(answers, Message(failed=(error.code, str(error))))
    except OSError as error:
        write_message(answers, Message(os_error=(error.errno or 0, str(error))))


def main() -> None:
    parent = int(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the broker decides
    _end_with(parent)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    plans, answers = sys.stdin.buffer, sys.stdout.buffer
    while isinstance(plan := read_message(plans), CleaningPlan):
        _carry_out(plan, parent, answers)


if __name__ == "__main__":
    main()
