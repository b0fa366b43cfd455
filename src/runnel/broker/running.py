"""One broker from its first file to its last: opened, served, drained and stopped in order.

`runnel serve` and `runnel.testing` both come through here. They differ in who asks for the stop (a
signal, a test) and in what they do once clients can connect.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final

from runnel.broker.cleaning_process import ProcessRewriter
from runnel.broker.exporting import Exporting
from runnel.broker.listener import Listeners
from runnel.broker.reachable import look_after
from runnel.broker.server import Broker, Ports, Progress, build
from runnel.broker.system import SystemClock, ThreadWorkers, boot_id
from runnel.cluster.sqlite import SqliteStore
from runnel.config.settings import Settings
from runnel.exporter.layout import State
from runnel.metrics import Metrics
from runnel.storage.files import MemoryDisk, OsDisk

_log = logging.getLogger(__name__)
WORKER_THREADS: Final = 8  # most of them wait for a disk
SLOW_S: Final = 3.0
# The broker, where it listens as `host:port`, and where its metrics are served, if they are.
OnReady = Callable[[Broker, list[str], str | None], None]


class StoppedError(Exception):
    """A stop was asked for before clients could come; nothing has been changed for good."""

    def __str__(self) -> str:
        return "stopped before it was ready; the next start begins anew"


async def run_broker(
    settings: Settings, stop: asyncio.Event, on_ready: OnReady, *, progress: Progress
) -> None:
    """Serve until `stop` is set. The caller holds the locks of the data folders.

    Raises RunnelError, OSError, StoppedError, or an ExceptionGroup of what ended one of the
    broker's tasks.
    """
    clock = SystemClock()
    workers = ThreadWorkers(WORKER_THREADS)
    rewriter = ProcessRewriter()
    exporting = None if settings.http is None else Exporting(settings.http)
    ports = Ports(
        clock=clock,
        disk=OsDisk(),
        memory_disk=MemoryDisk(),
        random=random.SystemRandom(),
        workers=workers,
        store=await SqliteStore.open(Path(settings.log_dirs[0]), clock),
        boot_id=boot_id(),
        rewriter=rewriter,
        metrics=Metrics() if exporting is None else exporting.metrics,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            exporter = tasks.create_task(_export(exporting))
            broker = await build(settings, ports, progress=progress)
            listeners = Listeners(broker)
            told = listeners.bind()
            await _unless(stop, broker.start(tasks, told), settings.log_dirs[0])
            listeners.start()
            _tell_elsewhere([f"{at.host}:{at.port}" for at in told], listeners.addresses)
            look_after(settings.listeners, told)
            _tell(exporting, State.READY)
            on_ready(broker, listeners.addresses, None if exporting is None else exporting.address)
            await stop.wait()
            _log.info("stopping")
            _tell(exporting, State.STOPPING)
            listeners.stop_accepting()
            await broker.drain()
            listeners.close()
            await broker.stop()
            exporter.cancel()
    finally:
        if exporting is not None:
            exporting.close()
        await ports.store.close()
        rewriter.close()
        workers.close()


def _tell_elsewhere(told: list[str], bound: list[str]) -> None:
    """Whoever cannot connect, though the broker answers, was sent to an address like these."""
    if told != bound:
        _log.info(
            "clients are told to connect to %s; advertised.listeners tells them another address",
            ", ".join(told),
        )


async def _export(exporting: Exporting | None) -> None:
    if exporting is not None:
        await exporting.run()


def _tell(exporting: Exporting | None, state: State) -> None:
    if exporting is not None:
        exporting.tell(state)


async def _unless(stop: asyncio.Event, start: Coroutine[None, None, None], folder: str) -> None:
    """Starting takes long where the metadata's disk takes no writes. Raises StoppedError."""
    starting, stopping = asyncio.create_task(start), asyncio.create_task(stop.wait())
    first = asyncio.FIRST_COMPLETED
    try:
        while not (await asyncio.wait((starting, stopping), timeout=SLOW_S, return_when=first))[0]:
            _log.warning("not ready yet, waiting for the metadata in %s: is its disk well?", folder)
        if not starting.done():
            raise StoppedError
        starting.result()
    finally:
        starting.cancel()
        stopping.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
