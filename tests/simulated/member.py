"""A member of a group, whatever its protocol: owns, commits, leaves, dies and comes back.

What it owns it moves on by made-up offsets, always upwards from the committed one, so that a
committed offset that goes back was lost.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.simulated.calls import (
    GROUP,
    Caller,
    CodeError,
    Connect,
    committed_offsets,
    find_coordinator,
)
from tests.simulated.consumer import RefusedError
from tests.simulated.rpc import LostError
from tests.support.coordinated import Commit, Coordinated
from tests.support.history import Outcome


@dataclass(frozen=True)
class Pace:
    """How fast a member lives, in seconds."""

    heartbeat_s: float = 0.3
    session_ms: int = 2000
    rebalance_ms: int = 3000
    away_s: float = 2.0  # between two lives
    life_s: float = 12.0  # on average
    dies: float = 0.5  # the chance that a life ends without a word


class Member:
    """Runs as a task until `stopping`. A protocol gives it `_enter`, `_beat` and `_leave`."""

    def __init__(
        self,
        connect: Connect,
        coordinated: Coordinated,
        name: str,
        group: str,
        topics: Mapping[str, int],
        topic_ids: Mapping[str, bytes],
        chance: Random,
        pace: Pace,
        *,
        instance_id: str | None = None,
    ) -> None:
        self.name = name
        self.stopping = False
        self.counts: Counter[str] = Counter()
        self.group = group
        self.topics = topics
        self.topic_ids = topic_ids
        self.chance = chance
        self.pace = pace
        self.instance_id = instance_id
        self.coordinated = coordinated
        self.member_id = ""
        self.epoch = -1
        self.owned: dict[TopicPartition, int] = {}  # and the next offset to commit
        self._connect = connect
        self.caller: Caller = connect(name)

    async def run(self) -> None:
        while not self.stopping:
            dies_at = asyncio.get_running_loop().time() + self.chance.expovariate(
                1 / self.pace.life_s
            )
            try:
                await find_coordinator(self.caller, GROUP, self.group)
                await self._live(dies_at)
            except (LostError, RefusedError) as error:
                self.counts[f"refused: {error}"] += 1
                await asyncio.sleep(self.chance.uniform(0.05, self.pace.heartbeat_s))
                continue
            await self._end_life()
        await self._end_life(is_last=True)
        self.caller.close()

    async def _live(self, dies_at: float) -> None:
        loop = asyncio.get_running_loop()
        await self._enter()
        while not self.stopping and loop.time() < dies_at:
            await asyncio.sleep(self.chance.uniform(0.5, 1.0) * self.pace.heartbeat_s)
            await self._beat()
            if self.owned and self.chance.random() < 0.5:
                await self._commit()

    async def _end_life(self, *, is_last: bool = False) -> None:
        if not is_last and self.chance.random() < self.pace.dies:
            self.counts["members died"] += 1
            self.caller.close()
            self.caller = self._connect(self.name)
        elif self.member_id:
            self.counts["members left"] += 1
            try:
                await self._leave()
            except (LostError, RefusedError) as error:
                self.counts[f"leaves that failed: {error}"] += 1
        self.forget()
        if not is_last:
            await asyncio.sleep(self.chance.uniform(0.0, 2 * self.pace.away_s))

    @property
    def identity(self) -> str:
        """A static member that comes back with another id is still the same one."""
        return self.instance_id or self.member_id

    def forget(self) -> None:
        """The next life is another member, unless its instance id says otherwise."""
        self.member_id, self.epoch = "", -1
        self.owned.clear()

    async def _enter(self) -> None:
        raise NotImplementedError

    async def _beat(self) -> None:
        raise NotImplementedError

    async def _leave(self) -> None:
        raise NotImplementedError

    async def own(self, partitions: Sequence[TopicPartition]) -> None:
        """Go on from the committed offsets of what is new."""
        for lost in [known for known in self.owned if known not in partitions]:
            del self.owned[lost]
        new = [partition for partition in partitions if partition not in self.owned]
        if new:
            began = self.coordinated.tick()
            offsets = await self._committed(new)
            self.coordinated.fetched(self.group, offsets, began=began)
            self.owned |= {partition: max(offset, 0) for partition, offset in offsets.items()}

    async def _committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        return await committed_offsets(self.caller, self.group, partitions)

    async def _commit(self) -> None:
        chosen = self.chance.sample(sorted(self.owned), self.chance.randint(1, len(self.owned)))
        offsets = {
            partition: self.owned[partition] + self.chance.randint(0, 4) for partition in chosen
        }
        self.owned |= offsets
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for partition, offset in offsets.items():
            topic = topics.setdefault(
                partition.topic, OffsetCommitRequestTopic(name=partition.topic)
            )
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition.index, committed_offset=offset
                )
            )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=list(topics.values()),
        )
        commits = self.coordinated.commits(self.group, self.name, offsets)
        try:
            response = await self.caller.call(request, 9)
        except LostError:
            # It may arrive yet, and would undo a later one: only another member goes on.
            self.forget()
            raise
        self._take_results(commits, response)

    def _take_results(self, commits: list[Commit], response: object) -> None:
        codes = {
            TopicPartition(topic.name, answer.partition_index): answer.error_code
            for topic in response.topics  # type: ignore[attr-defined]  # an OffsetCommitResponse
            for answer in topic.partitions
        }
        refused = None
        for commit in commits:
            code = ErrorCode(codes[commit.partition])
            if code is ErrorCode.NONE:
                self.coordinated.settle(commit, Outcome.OK)
            else:
                refused = code
                in_doubt = code in (
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.REQUEST_TIMED_OUT,
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                )
                self.coordinated.settle(commit, Outcome.UNKNOWN if in_doubt else Outcome.FAIL)
        if refused is not None:
            self.counts["commits refused"] += 1
            raise CodeError(refused)
