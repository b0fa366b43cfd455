"""A broker's part in the cluster: registration, lease, image, and the controller's work.

The order of a start is `register` (a new epoch; the caller deletes its clean-shutdown file after
it and before the first write), then `start`. The image follows the store by a watch; decisions are
made on it, and a stale one costs a refused transaction, never safety. After an UNKNOWN outcome
everything is read again and decided anew: what was applied after all is recognised as our own by
the random id that it carries, and what is applied late finds its compares false.

One decision is under way at a time (`_deciding`). Nothing here decides by time, except when to
try again.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from random import Random

from runnel.cluster import configs, decide
from runnel.cluster.client_quotas import QuotaAlteration
from runnel.cluster.configs import Alteration
from runnel.cluster.decide import BrokerInfo, FoundTopic, Transaction
from runnel.cluster.founding import ensure_cluster, new_id
from runnel.cluster.image import Broker, ControllerTerm, Image, Topic, load
from runnel.cluster.topics import NewPartitions, NewTopic, TopicDefaults
from runnel.cluster.values import ConfigOwner
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock, Compacted, MetadataStore, Outcome
from runnel.types import TopicId

MAX_ATTEMPTS = 20
SILENCE_S = 30.0  # without an event for this long the watch is made anew
REACH_S = 1.0  # a watch this far behind is overtaken by a read

OnImage = Callable[[Image, Image], None]

_log = logging.getLogger(__name__)


class Membership:
    """Owned by the server. `image` is replaced, never changed; `on_image` hears of every step."""

    def __init__(
        self,
        store: MetadataStore,
        info: BrokerInfo,
        clock: Clock,
        random: Random,
        *,
        defaults: TopicDefaults | None = None,
        lease_ms: int = 6000,
    ) -> None:
        self.image = Image()
        self.on_image: list[OnImage] = []
        self.broker_epoch = 0
        self.lease_deadline_ms = 0  # by the monotonic clock, from when the keep-alive was sent
        self._store = store
        self._info = info
        self._clock = clock
        self._random = random
        self.defaults = defaults or TopicDefaults()
        self._lease_ms = lease_ms
        self._lease = 0
        self._incarnation = random.randbytes(16).hex()
        self._moved = asyncio.Event()
        self._deciding = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_controller(self) -> bool:
        return self._term() is not None

    async def register(self) -> int:
        """Txn A: a new broker epoch, once an earlier life of this broker is gone from the store.

        Raises RunnelError: DUPLICATE_BROKER_REGISTRATION if that life does not end,
        UNSUPPORTED_VERSION if a newer version owns the store.
        """
        await ensure_cluster(self._store, self._random, "")
        deadline_ms = self._clock.monotonic_ms() + 3 * self._lease_ms
        while True:
            await self._reload()
            seen = self.image.brokers.get(self._info.id, Broker(self._info.id))
            if seen.incarnation == self._incarnation:
                self.broker_epoch = seen.epoch
                return self.broker_epoch
            if seen.live_epoch == 0:
                transaction = decide.begin_epoch(seen, self._info, self._incarnation)
                result = await self._store.txn(*transaction)
                if result.outcome is Outcome.OK:
                    self.broker_epoch = result.revision
                    return self.broker_epoch
            if self._clock.monotonic_ms() > deadline_ms:
                raise RunnelError(
                    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                    f"another process is broker {self._info.id}",
                )
            await self._pause()

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Txn B, then follow, renew and control until `stop`. Returns once this broker is ready."""
        assert self.broker_epoch, "register first"
        await self._reload()
        await self._announce()
        self._tasks = [
            tasks.create_task(self._follow(), name="metadata watch"),
            tasks.create_task(self._renew(), name="metadata lease"),
            tasks.create_task(self._control(), name="controller"),
        ]
        while not self._me().ready:
            await self._moved.wait()

    async def stop(self) -> None:
        """Leave: the lease ends and with it this life. The caller has written its clean file."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._store.revoke_lease(self._lease)
        except RunnelError as error:
            _log.warning("the lease runs out by itself: %s", error)

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[Topic | RunnelError]:
        """One result per topic, in order. What was created is in `image` on return."""
        results: list[Topic | RunnelError] = []
        async with self._deciding:
            for new in topics:
                try:
                    results.append(await self._create(new, validate_only))
                except RunnelError as error:
                    results.append(error)
        return results

    async def add_partitions(self, new: NewPartitions, *, validate_only: bool = False) -> None:
        """What was added is in `image` on return. Raises RunnelError, also after some were added:
        many take several transactions, and asking again adds the rest.
        """
        async with self._deciding:
            start = self._random.randrange(1 << 20)
            for attempt in range(MAX_ATTEMPTS):
                term = self._ensure_term()
                topic = self.image.topics.get(new.topic)
                if attempt and topic is not None and len(topic.partitions) == new.count:
                    return  # an outcome that was unknown turned out well
                added = decide.plan_partitions(self.image, new, self.defaults, start)
                if validate_only:
                    return
                assert topic is not None, "there is a plan for it"
                if await self._carry_out(decide.add_partitions(term.create_revision, topic, added)):
                    return
        raise _gave_up(f"adding partitions to {new.topic}")

    async def update_features(self, levels: Mapping[str, int]) -> None:
        """They are finalized in `image` on return. Raises RunnelError."""
        async with self._deciding:
            for _ in range(MAX_ATTEMPTS):
                term = self._ensure_term()
                if levels.items() <= self.image.features.items():
                    return
                change = decide.update_features(self.image, term.create_revision, levels)
                await self._carry_out([change])
        raise _gave_up("the update of features")

    async def unregister(self, broker_id: int) -> None:
        """Raises RunnelError: BROKER_ID_NOT_REGISTERED, or INVALID_REQUEST while it is up."""
        async with self._deciding:
            for attempt in range(MAX_ATTEMPTS):
                term = self._ensure_term()
                broker = self.image.brokers.get(broker_id)
                if broker is None and attempt:
                    return
                if broker is None:
                    raise RunnelError(
                        ErrorCode.BROKER_ID_NOT_REGISTERED,
                        f"Broker ID {broker_id} is not currently registered",
                    )
                if broker.live_epoch:
                    raise RunnelError(
                        ErrorCode.INVALID_REQUEST, f"broker {broker_id} is running: stop it first"
                    )
                await self._carry_out([decide.unregister(term.create_revision, broker)])
        raise _gave_up(f"the end of broker {broker_id}'s registration")

    async def adopt(self, found: Sequence[FoundTopic], producer_ids_from: int) -> None:
        """Give topics that a data folder holds a place in the metadata. Raises RunnelError.

        Producer ids that stand in its logs are never given out again. May be repeated after a
        crash: what is there already is left as it is.
        """
        if producer_ids_from > 0:
            await self.allocate_producer_ids(at_least=producer_ids_from)
        async with self._deciding:
            for topic in found:
                term = self._ensure_term()
                plan = decide.adopt_topic(self._me(), topic)
                while topic.topic_id not in self.image.topics_by_id:
                    transactions = decide.create_topic(self.image, term.create_revision, plan)
                    await self._carry_out(transactions)

    async def delete_topics(self, topic_ids: Sequence[TopicId]) -> list[RunnelError | None]:
        """One result per id, in order. What was deleted is gone from `image` on return."""
        results: list[RunnelError | None] = []
        async with self._deciding:
            for topic_id in topic_ids:
                try:
                    await self._delete(topic_id)
                    results.append(None)
                except RunnelError as error:
                    results.append(error)
        return results

    async def alter_configs(
        self, owner: ConfigOwner, alteration: Alteration, *, validate_only: bool = False
    ) -> None:
        """What was changed is in `image` on return. Raises RunnelError, and then nothing is."""
        async with self._deciding:
            for _ in range(MAX_ATTEMPTS):
                transactions = configs.alter_configs(
                    self.image,
                    self._ensure_term().create_revision,
                    owner,
                    alteration,
                    self.defaults.min_insync_replicas,
                )
                if validate_only or not transactions:
                    return
                await self._carry_out(transactions)
        raise _gave_up(f"the settings of {owner.kind} {owner.name}")

    async def allocate_producer_ids(self, at_least: int = 0) -> range:
        """A block of ids that no broker ever had. Raises RunnelError(REQUEST_TIMED_OUT)."""
        async with self._deciding:
            for _ in range(MAX_ATTEMPTS):
                transaction, block = decide.allocate_producer_ids(self.image, self._me(), at_least)
                # An UNKNOWN block may be ours or nobody's: ids are plenty, so it is let go.
                if await self._carry_out([transaction]):
                    return block
        raise _gave_up("a block of producer ids")

    async def alter_client_quotas(self, alterations: Sequence[QuotaAlteration]) -> None:
        """All of them, and they are in `image` on return. Raises RunnelError."""
        async with self._deciding:
            for _ in range(MAX_ATTEMPTS):
                term = self._ensure_term().create_revision
                if await self._carry_out(decide.alter_client_quotas(self.image, term, alterations)):
                    return
        raise _gave_up("the change of quotas")

    async def _create(self, new: NewTopic, validate_only: bool) -> Topic:
        topic_id, start = new_id(self._random), self._random.randrange(1 << 20)
        for _ in range(MAX_ATTEMPTS):
            term = self._ensure_term()
            mine = self.image.topics_by_id.get(topic_id)
            if mine is not None:
                return mine
            plan = decide.plan_topic(self.image, new, topic_id, self.defaults, start)
            if validate_only:
                return plan
            if await self._carry_out(decide.create_topic(self.image, term.create_revision, plan)):
                return self.image.topics_by_id[topic_id]
        raise _gave_up(f"the creation of {new.name}")

    async def _delete(self, topic_id: TopicId) -> None:
        for attempt in range(MAX_ATTEMPTS):
            term = self._ensure_term()
            topic = self.image.topics_by_id.get(topic_id)
            if topic is not None:
                await self._carry_out(decide.delete_topic(term.create_revision, topic))
            elif attempt == 0:
                raise RunnelError(
                    ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
                )
            elif topic_id not in self.image.unnamed:
                return
            else:
                await self._carry_out(decide.sweep(self.image, term.create_revision))
        raise _gave_up(f"the deletion of topic {topic_id.hex()}")

    async def _announce(self) -> None:
        """Txn B. Raises RunnelError if another process took this broker's place."""
        while True:
            sent_ms = self._clock.monotonic_ms()
            if not self._lease or not await self._store.keep_alive(self._lease):
                self._lease = await self._store.grant_lease(self._lease_ms)
            self.lease_deadline_ms = sent_ms + self._lease_ms
            transaction = decide.announce(self._info, self.broker_epoch, self._lease)
            result = await self._store.txn(*transaction)
            if result.outcome is Outcome.OK:
                return
            await self._reload()
            if self._me().epoch != self.broker_epoch:
                raise RunnelError(
                    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                    f"another process has become broker {self._info.id}",
                )
            if self._me().live:
                return
            await self._pause()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with (
                    asyncio.timeout(SILENCE_S) as silence,
                    aclosing(self._store.watch("", self.image.revision + 1)) as events,
                ):
                    async for event in events:
                        if isinstance(event, Compacted):
                            await self._reload()
                        elif event.revision > self.image.revision:
                            self._advance(self.image.apply(event))
                        silence.reschedule(loop.time() + SILENCE_S)
                await self._pause()  # compacted, or the store is closing
            except TimeoutError:
                _log.debug("no change of metadata in %d s, watching anew", SILENCE_S)
            except RunnelError as error:
                _log.warning("metadata store: %s", error)
                await self._pause()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            sent_ms = self._clock.monotonic_ms()
            try:
                alive = await self._store.keep_alive(self._lease)
                if alive and self._me().live:
                    self.lease_deadline_ms = sent_ms + self._lease_ms
                else:
                    _log.warning("the lease of broker %d is gone, registering again", self._info.id)
                    await self._announce()
            except RunnelError as error:
                if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                    raise
                _log.warning("metadata store: %s", error)

    async def _control(self) -> None:
        swept_term: ControllerTerm | None = None
        while True:
            moved = self._moved
            try:
                term = self._term()
                if self.image.controller is None and self._me().live:
                    campaign = decide.campaign(self._info, self.broker_epoch, self._lease)
                    await self._carry_out([campaign])
                    continue
                if term is not None and term != swept_term:
                    async with self._deciding:
                        transactions = [
                            *decide.sweep(self.image, term.create_revision),
                            *configs.settle_min_isr(
                                self.image, term.create_revision, self.defaults.min_insync_replicas
                            ),
                        ]
                        if await self._carry_out(transactions):
                            swept_term = term
                    continue
                if term is not None and await self._unfence_one():
                    continue
            except RunnelError as error:
                _log.warning("controller: %s", error)
                await self._pause()
                continue
            await moved.wait()

    async def _unfence_one(self) -> bool:
        """True if there was a broker to make ready, whether it worked or must be tried again."""
        async with self._deciding:
            term = self._term()
            waiting = [b for b in self.image.brokers.values() if b.live and not b.ready]
            if term is None or not waiting:
                return False
            broker = waiting[0]
            before = self.image
            transactions = decide.unfence(before, term.create_revision, broker)
            if await self._carry_out(transactions):
                lossy = _newly_recovering(before, self.image)
                if lossy:
                    _log.warning(
                        "broker %d came back from an unclean stop: it leads %d partitions as the "
                        "last known leader, and the end of their logs may be lost",
                        broker.id,
                        lossy,
                    )
            return True

    async def _carry_out(self, transactions: Sequence[Transaction]) -> bool:
        """True if all were applied; the image has them then. False: decide again on the image."""
        revision = self.image.revision
        for transaction in transactions:
            result = await self._store.txn(*transaction)
            if result.outcome is Outcome.UNKNOWN:
                await self._pause()
                await self._reload()
                return False
            revision = max(revision, result.revision)
            if result.outcome is Outcome.REFUSED:
                await self._reach(revision)
                return False
        await self._reach(revision)
        return True

    async def _reach(self, revision: int) -> None:
        try:
            async with asyncio.timeout(REACH_S):
                while self.image.revision < revision:
                    await self._moved.wait()
        except TimeoutError:
            await self._reload()

    async def _reload(self) -> None:
        snapshot = await self._store.read("")
        if snapshot.revision > self.image.revision:
            self._advance(load(snapshot))

    def _advance(self, image: Image) -> None:
        old, self.image = self.image, image
        self._moved.set()
        self._moved = asyncio.Event()
        for callback in self.on_image:
            callback(old, image)

    def _me(self) -> Broker:
        return self.image.brokers.get(self._info.id, Broker(self._info.id))

    def _term(self) -> ControllerTerm | None:
        term = self.image.controller
        if term is None or term[:2] != (self._info.id, self.broker_epoch):
            return None
        return term

    def _ensure_term(self) -> ControllerTerm:
        term = self._term()
        if term is None:
            raise RunnelError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller.")
        return term

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(0.02, 0.1))


def _newly_recovering(before: Image, after: Image) -> int:
    return sum(
        partition.recovering and not was.recovering
        for topic_id, topic in after.topics_by_id.items()
        if topic_id in before.topics_by_id
        for partition, was in zip(
            topic.partitions, before.topics_by_id[topic_id].partitions, strict=False
        )
    )


def _gave_up(what: str) -> RunnelError:
    return RunnelError(ErrorCode.REQUEST_TIMED_OUT, f"{what} met {MAX_ATTEMPTS} other changes")
