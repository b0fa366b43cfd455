"""Builds a broker from settings and ports, starts it, drains it, stops it.

The one place where the parts are wired, by plain constructor calls. A real process, a test, the
benchmark and the simulator all come through `build`; they differ only in the ports they pass.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from runnel.broker.api_table import api_table
from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.connection import Connection, Reply
from runnel.broker.context import Services
from runnel.broker.dispatch import Dispatch
from runnel.broker.fetch_sessions import FetchSessions
from runnel.broker.flusher import Flusher
from runnel.broker.partitions import Partitions
from runnel.broker.producer_ids import ProducerIds
from runnel.broker.security import AllowAll
from runnel.broker.topics import Topics
from runnel.broker.upkeep import Upkeep
from runnel.broker.waiting import Waiting
from runnel.cluster.membership import Membership
from runnel.config.settings import Settings
from runnel.metrics import Metrics
from runnel.ports import Clock, Disk, MetadataStore, Workers
from runnel.storage.store import LogStore

_log = logging.getLogger(__name__)
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside world of one broker."""

    clock: Clock
    disk: Disk
    memory_disk: Disk
    random: random.Random
    workers: Workers
    store: MetadataStore


class Broker:
    """Everything but sockets. Made by `build`; `handle` serves the frames of every connection."""

    def __init__(self, settings: Settings, ports: Ports) -> None:
        self.settings = settings
        self.ports = ports
        self.metrics = Metrics()
        self.buffers = ReceiveBuffers(settings.memory_budget_bytes)
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        waiting = Waiting(self._loop)
        self._logs = LogStore(
            ports.disk, settings.log_dirs, ports.clock, ports.random, settings.log,
            memory_disk=ports.memory_disk, open_files_max=settings.max_open_files,
        )  # fmt: skip
        self._flusher = Flusher(ports.workers, self.metrics)
        self.partitions = Partitions(
            self._logs, settings, ports.clock, waiting, ports.workers, self._flusher.touched
        )
        self._membership = Membership(
            ports.store, settings, ports.clock, ports.random
        )
        self._upkeep = Upkeep(
            settings, ports.clock, ports.workers, self._logs, self.partitions, self.metrics
        )
        services = Services(
            settings=settings,
            clock=ports.clock,
            random=ports.random,
            workers=ports.workers,
            loop=self._loop,
            membership=self._membership,
            partitions=self.partitions,
            sessions=FetchSessions(
                settings.max_incremental_fetch_session_cache_slots, ports.random
            ),
            flusher=self._flusher,
            metrics=self.metrics,
            topics=Topics(self._membership, self.partitions, settings),
            producer_ids=ProducerIds(self._membership),
        )
        self._dispatch = Dispatch(api_table(), services, waiting, AllowAll())

    def handle(self, connection: Connection, frame: memoryview) -> Reply:
        return self._dispatch.handle(connection, frame)
