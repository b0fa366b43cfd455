"""Builds a broker from settings and ports, starts it, drains it, stops it.

The one place where the parts are wired, by plain constructor calls. A real process, a test, the
benchmark and the simulator all come through `build`; they differ only in the ports they pass.

Order at the start: identity of the data folder, logs opened and recovered, a new broker epoch in
the store, the clean-shutdown marker removed, partitions opened and led; only then clients.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from runnel.broker.api_table import api_table
from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.cleaner import Cleaner
from runnel.broker.connection import Handle
from runnel.broker.context import Services
from runnel.broker.coordination import Coordination
from runnel.broker.courtesy import Courtesy
from runnel.broker.dispatch import Dispatch
from runnel.broker.fetch_sessions import FetchSessions
from runnel.broker.flusher import Flusher
from runnel.broker.gathering import Gathering
from runnel.broker.internal_topics import own_configs
from runnel.broker.live_settings import settings_now
from runnel.broker.log_dirs import LogDirs
from runnel.broker.partitions import Partitions
from runnel.broker.producer_ids import ProducerIds
from runnel.broker.quotas import Quotas, Windows
from runnel.broker.rewriter import InlineRewriter, Rewriter
from runnel.broker.topics import Topics
from runnel.broker.upkeep import Upkeep
from runnel.broker.waiting import Waiting
from runnel.broker.warming import AT_ONCE, Warming
from runnel.cluster.decide import ADOPTED_CONFIGS, BrokerInfo, FoundTopic
from runnel.cluster.founding import ensure_cluster, is_adopted, note_adopted
from runnel.cluster.image import Image, load
from runnel.cluster.membership import Membership
from runnel.cluster.topics import TopicDefaults
from runnel.config.listeners import Listener
from runnel.config.overrides import topic_config
from runnel.config.settings import Settings
from runnel.config.topic import LogConfig
from runnel.metrics import Metrics
from runnel.native.records import COMPILED
from runnel.ports import Clock, Disk, MetadataStore, Workers
from runnel.storage.checkpoints import META_PROPERTIES, MetaProperties
from runnel.storage.store import LogStore, Opened, read_identity
from runnel.types import NO_TOPIC_ID
from runnel.wire import hot

_log = logging.getLogger(__name__)
Progress = Callable[[int, int, str], None]
KRAFT_METADATA: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside world of one broker."""

    clock: Clock
    disk: Disk
    memory_disk: Disk
    random: random.Random
    workers: Workers
    store: MetadataStore
    boot_id: str = ""
    rewriter: Rewriter | None = None  # of logs on disk; None: a worker does it
    metrics: Metrics = field(default_factory=Metrics)  # in plain memory, if no exporter maps them


class Broker:
    """Everything but sockets. Made by `build`; `handle` serves the frames of every connection."""

    def __init__(
        self, started: Settings, settings: Settings, ports: Ports, logs: LogStore, opened: Opened
    ) -> None:
        self._started = started
        self.settings = settings  # as they are now; replaced when somebody alters them
        self.metrics = ports.metrics
        self.clock = ports.clock
        self.buffers = ReceiveBuffers(_receive_budget_bytes(settings))
        self._ports = ports
        self._logs = logs
        logs.cordoned = settings.cordoned_log_dirs
        self._opened = opened
        self._waiting = Waiting(asyncio.get_running_loop())
        self.wake_few = self._waiting.wake_few
        self._gathering = Gathering(asyncio.get_running_loop())
        self._flusher = Flusher(ports.workers, self.metrics)
        self.warming = Warming(ports.workers, self.metrics, Courtesy(ports.clock, self.metrics))
        self.partitions = Partitions(logs, settings, ports.clock, self._waiting, self._flusher)
        self._upkeep = Upkeep(
            settings, ports.clock, ports.workers, logs, self.partitions, self.metrics
        )
        self.quotas = Quotas(
            Windows(
                settings.quota_window_num,
                settings.quota_window_size_seconds,
                settings.controller_quota_window_num,
                settings.controller_quota_window_size_seconds,
            )
        )
        self._log_dirs = LogDirs(
            logs,
            self.partitions,
            ports.workers,
            opened.directory_ids,
            settings.log_dirs,
            settings.alter_log_dirs_bytes_per_second,
        )
        self._cleaner = Cleaner(
            settings.cleaner,
            ports.clock,
            ports.random,
            ports.workers,
            self.partitions,
            (
                (ports.disk, ports.rewriter or InlineRewriter(ports.workers, ports.disk)),
                (ports.memory_disk, InlineRewriter(ports.workers, ports.memory_disk)),
            ),
            self._upkeep.write_checkpoints,
            logs.futures,
            self.metrics,
        )
        self._coordination = Coordination(
            lambda: self.settings,
            lambda: self._membership.image,
            lambda: self._services.producer_ids.take(),
            self.partitions,
            ports.clock,
            ports.random,
            ports.workers,
            self._waiting,
        )
        self.groups = self._coordination.groups
        self.transactions = self._coordination.transactions
        self._tasks: list[asyncio.Task[None]] = []

    _membership: Membership
    _services: Services
    _dispatch: Dispatch
    handle: Handle  # from `start` on; an attribute, because a method would be one more call

    @property
    def cluster_id(self) -> str:
        cluster = self._membership.image.cluster
        return "" if cluster is None else cluster.cluster_id

    async def start(self, tasks: asyncio.TaskGroup, endpoints: tuple[Listener, ...]) -> None:
        """Join the cluster under these addresses, lead what is ours, begin the recurring work.

        Returns when clients may come. A task that fails ends the group, and so the process.
        """
        settings, ports = self.settings, self._ports
        info = BrokerInfo(
            settings.node_id,
            endpoints,
            settings.rack,
            clean_epoch=self._opened.broker_epoch,
            boot_id=ports.boot_id,
            write_failed=not self._opened.same_boot,
        )
        self._membership = Membership(
            ports.store,
            info,
            ports.clock,
            ports.random,
            defaults=_topic_defaults(settings),
            lease_ms=settings.metadata_lease_ms,
        )
        await self._membership.register()
        self._logs.remove_clean_markers()
        await self._membership.start(tasks)
        await self._adopt()
        self._services = self._make_services()
        self._dispatch = Dispatch(api_table(), self._services, self._waiting, authorizer=None)
        self.handle = self._dispatch.handle
        self._membership.on_image.append(self._image_changed)
        self._membership.on_image.append(lambda _old, new: self.quotas.follow(new.client_quotas))
        self._coordination.image_changed(Image(), self._membership.image)
        self.partitions.image_changed(self._membership.image)
        self.quotas.follow(self._membership.image.client_quotas)
        self._tasks = [
            tasks.create_task(work)
            for work in (
                self.partitions.follow_image(self._membership.broker_epoch),
                self._flusher.run_on_request(),
                self._flusher.run_every(settings.flush_interval_ms),
                self._upkeep.retain(),
                self._upkeep.empty_trash(),
                self._upkeep.checkpoint(),
                self._upkeep.watch_lag(),
                self._log_dirs.run(),
                self._cleaner.run(),
                self.groups.run(),
                self.transactions.run(),
                *(self.warming.run() for _ in range(AT_ONCE)),
            )
        ]
        await self.partitions.caught_up_with(self._membership.image.revision)
        self.partitions.warn_of_strays()
        if self.metrics.shared is not None:
            self._tasks.append(tasks.create_task(self._tell_exporter()))

    async def _tell_exporter(self) -> None:
        """Imported when clients may come already: a start need not wait for it."""
        from runnel.broker.facts import facts_of
        from runnel.broker.gauges import Gauges
        from runnel.broker.shared_rows import write_facts

        write_facts(self.metrics, facts_of(self.settings.node_id, self.cluster_id))
        await Gauges(
            self.metrics,
            self.partitions,
            self._flusher,
            self._log_dirs,
            self.groups,
            self.transactions,
            self._waiting,
            self._ports.workers,
        ).run()

    async def _adopt(self) -> None:
        """Take in what the data folders held before there was any metadata about them."""
        store, broker_id = self._ports.store, self.settings.node_id
        if not await is_adopted(store, broker_id):
            ids = [max(log.producers.producers, default=-1) for log in self._logs.logs]
            found = _topics_on_disk(self._logs, self.settings, self._membership.image)
            await self._membership.adopt(found, max(ids, default=-1) + 1)
            await note_adopted(store, broker_id)

    def _image_changed(self, old: Image, new: Image) -> None:
        if new.configs is not old.configs:
            self._take_settings(settings_now(new, self._started))
        self._coordination.image_changed(old, new)
        self.partitions.image_changed(new)

    def _take_settings(self, settings: Settings) -> None:
        self.settings = self._services.settings = settings
        self._membership.defaults = _topic_defaults(settings)
        self.partitions.settings_changed(settings)
        self._log_dirs.bytes_per_second = settings.alter_log_dirs_bytes_per_second
        self._logs.cordoned = settings.cordoned_log_dirs
        self._cleaner.settings = settings.cleaner

    def _make_services(self) -> Services:
        settings, ports = self.settings, self._ports
        return Services(
            settings=settings,
            clock=ports.clock,
            workers=ports.workers,
            loop=asyncio.get_running_loop(),
            membership=self._membership,
            partitions=self.partitions,
            sessions=FetchSessions(
                settings.max_incremental_fetch_session_cache_slots, ports.random
            ),
            flusher=self._flusher,
            metrics=self.metrics,
            topics=Topics(self._membership, self.partitions),
            producer_ids=ProducerIds(self._membership),
            upkeep=self._upkeep,
            warming=self.warming,
            quotas=self.quotas,
            log_dirs=self._log_dirs,
            waiting=self._waiting,
            gathering=self._gathering,
            groups=self.groups,
            transactions=self.transactions,
            markers=self._coordination.markers,
        )

    async def drain(self) -> None:
        """Let requests under way come to their end: in a worker, in the store, or at an fsync.

        The caller has seen to it that no more come.
        """
        timeout_ms = self.settings.shutdown_timeout_ms
        self._gathering.end_turn()
        await self._dispatch.drain(timeout_ms)
        await self._waiting.drain(timeout_ms)

    async def stop(self) -> None:
        """With the connections closed: flush everything, write the marker, leave the cluster."""
        self.kill()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        epoch, watermarks = self._membership.broker_epoch, self.partitions.high_watermarks()
        await self._ports.workers.run(lambda: self._logs.close_clean(epoch, watermarks))
        await self._membership.stop()

    def kill(self) -> None:
        """Stop the recurring work and nothing else, as a crash would."""
        self._gathering.stop()
        self._coordination.stop()
        for task in self._tasks:
            task.cancel()


async def build(
    settings: Settings, ports: Ports, *, progress: Progress = lambda _done, _total, _name: None
) -> Broker:
    """Open the data folders and recover what a crash left. Raises RunnelError and OSError."""
    identity = _identity(ports.disk, settings.log_dirs)
    if identity is not None and not {"node.id", "broker.id"} & settings.given.keys():
        settings = replace(settings, node_id=identity.node_id)  # a folder knows whose it is
    proposal = "" if identity is None else identity.cluster_id
    cluster_id = await ensure_cluster(ports.store, ports.random, proposal)
    image = load(await ports.store.read(""))
    current = settings_now(image, settings)
    logs = LogStore(
        ports.disk,
        list(settings.log_dirs),
        ports.clock,
        ports.random,
        current.log,
        memory_disk=ports.memory_disk,
        cluster_id=cluster_id,
        node_id=settings.node_id,
        boot_id=ports.boot_id,
        max_open_files=settings.max_open_files,
        map_blocking=ports.workers.map,
    )

    def config_of(topic: str) -> LogConfig | None:
        """None where the metadata does not know the topic: nothing is assumed of it then."""
        known = image.topics.get(topic)
        return None if known is None else topic_config(current, known.configs)

    # In a worker, so that the loop hears a signal meanwhile; nobody else has the logs yet.
    opened = await ports.workers.run(
        lambda: logs.open(progress, config_of=config_of, keep_marker=True)
    )
    for notice in opened.notices:
        _log.warning("%s: %s", notice.path, notice.text)
    if not opened.clean and len(logs):
        _log.info("the last stop was not a clean one; %d logs were checked", len(logs))
    for folder in logs.dirs:
        if not ports.disk.tells_cached(f"{folder}/{META_PROPERTIES}"):
            _log.info("%s: its file system does not tell what is cached: cold reads block", folder)
    if not COMPILED:
        _log.info("the record decoder is not compiled; its Python twin serves")
    if not hot.COMPILED:
        _log.info("produce and fetch run as Python source; `pip install` compiles them")
    return Broker(settings, current, ports, logs, opened)


def _topic_defaults(settings: Settings) -> TopicDefaults:
    return TopicDefaults(
        settings.num_partitions,
        settings.default_replication_factor,
        settings.log.min_insync_replicas,
        settings.storage,
    )


def _identity(disk: Disk, folders: Iterable[str]) -> MetaProperties | None:
    """Of the first folder that has one: a new disk may stand before those that were there."""
    for folder in folders:
        with contextlib.suppress(OSError):  # the opening tells of it, and does without
            if (found := read_identity(disk, folder)) is not None:
                return found
    return None


def _receive_budget_bytes(settings: Settings) -> int:
    if settings.queued_max_request_bytes < 0:
        return settings.memory_budget_bytes
    return min(settings.queued_max_request_bytes, settings.memory_budget_bytes)


def _topics_on_disk(logs: LogStore, settings: Settings, image: Image) -> list[FoundTopic]:
    """What another broker's data folder holds. Kafka's own metadata log is none of ours.

    The coordinators' topics are configured as those made here: uncompacted they would only grow.
    """
    own = own_configs(settings, image)
    epochs: dict[tuple[str, bytes], dict[int, int]] = {}
    for log in logs.logs:
        if log.topic != KRAFT_METADATA and log.topic_id != NO_TOPIC_ID:
            epochs.setdefault((log.topic, log.topic_id), {})[log.index] = log.epochs.latest_epoch
    found: list[FoundTopic] = []
    for (name, topic_id), by_index in sorted(epochs.items()):
        count = max(by_index) + 1
        firsts = tuple(by_index.get(index, -1) + 1 for index in range(count))
        configs = own.get(name, ADOPTED_CONFIGS)
        found.append(FoundTopic(name, topic_id, firsts, configs))
        _log.info("topic %s with %d partitions is adopted from the data folder", name, count)
    return found
