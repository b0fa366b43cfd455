"""One broker from its first file to its last: opened, served, drained and stopped in order.

`runnel serve` and `runnel.testing` both come through here. They differ in who asks for the stop (a
signal, a test) and in what they do once clients can connect.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runnel.broker.listener import Listeners
from runnel.broker.server import Broker, Ports, Progress, build
from runnel.broker.system import SystemClock, ThreadWorkers, boot_id
from runnel.cluster.sqlite import SqliteStore
from runnel.config.settings import Settings
from runnel.storage.files import MemoryDisk, OsDisk

_log = logging.getLogger(__name__)
WORKER_THREADS: Final = 8  # most of them wait for a disk
OnReady = Callable[[Broker, list[str]], None]  # the broker, and where it listens as `host:port`


async def run_broker(
    settings: Settings, stop: asyncio.Event, on_ready: OnReady, *, progress: Progress
) -> None:
    """Serve until `stop` is set. The caller holds the locks of the data folders.

    Raises RunnelError, OSError, or an ExceptionGroup of what ended one of the broker's tasks.
    """
    clock = SystemClock()
    workers = ThreadWorkers(WORKER_THREADS)
    ports = Ports(
        clock=clock,
        disk=OsDisk(),
        memory_disk=MemoryDisk(),
        random=random.SystemRandom(),
        workers=workers,
        store=await SqliteStore.open(Path(settings.log_dirs[0]), clock),
        boot_id=boot_id(),
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            broker = await build(settings, ports, progress=progress)
            listeners = Listeners(broker)
            await broker.start(tasks, listeners.bind())
            listeners.start()
            on_ready(broker, listeners.addresses)
            await stop.wait()
            _log.info("stopping")
            listeners.stop_accepting()
            await broker.drain()
            listeners.close()
            await broker.stop()
    finally:
        await ports.store.close()
        workers.close()
