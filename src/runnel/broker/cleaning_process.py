"""Rewriting logs in processes of their own, so that the loop and its interpreter do not notice.

A process is started when there is work, kept while there is more, and ended when the cleaner rests.
Threads of the loop's own executor wait for its answers. Ending a rewrite early ends its process.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.cleaning_plan import CleaningPlan

if TYPE_CHECKING:
    from runnel.storage.rewriting import Cleaned


class ProcessRewriter:
    """Owned by whoever runs the broker, who closes it."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []

    async def rewrite(self, plan: CleaningPlan) -> "AsyncGenerator[Cleaned, None]":
        """Raises OSError, also when the process ends unasked, and RunnelError."""
        child = self._idle.pop() if self._idle else await asyncio.to_thread(_start)
        from runnel.broker.cleaning_messages import Message, read_message, write_message

        is_done = False
        try:
            assert child.stdin is not None and child.stdout is not None
            await asyncio.to_thread(partial(write_message, child.stdin, plan))
            while True:
                message = await asyncio.to_thread(partial(read_message, child.stdout))
                if not isinstance(message, Message):
                    raise OSError(f"the process that cleans ended with status {child.wait()}")
                is_done = message.cleaned is None
                if message.failed is not None:
                    raise RunnelError(ErrorCode(message.failed[0]), message.failed[1])
                if message.os_error is not None:
                    raise OSError(*message.os_error)
                if message.cleaned is None:
                    return
                yield message.cleaned
        finally:
            if is_done:
                self._idle.append(child)
            else:
                child.kill()
                await asyncio.to_thread(_end, child)

    def rest(self) -> None:
        while self._idle:
            asyncio.get_running_loop().run_in_executor(None, _end, self._idle.pop())

    def close(self) -> None:
        for child in self._idle:
            _end(child)


def _start() -> "subprocess.Popen[bytes]":
    """In a thread. What is needed to talk to it is imported here: neither a start of the broker nor
    its loop should wait for that.
    """
    import runnel.broker.cleaning_messages  # see above

    root = str(Path(runnel.__file__).parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "runnel.broker.cleaning_child", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def _end(child: "subprocess.Popen[bytes]") -> None:
    """It has nothing that anybody needs, so it need not be asked."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
