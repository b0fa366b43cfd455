"""A classic group under any order of requests, time and restarts (Hypothesis).

Members behave like clients: they join with their id, sync, send heartbeats, leave or fall silent.
Checked after every step: nobody is told two assignments for one generation, nobody who is told a
generation is told an older one later, a stale generation is never taken, and whoever waits is one
whom the group knows.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from runnel.coordinator.groups.classic_group import ClassicState
from runnel.coordinator.runtime import Deferred
from runnel.errors import ErrorCode
from tests.support.classic_members import Members
from tests.support.shards import GroupStage, waits

PARTITIONS = 6
NAMES = ["a", "b", "c", "d", "e"]
clients = st.sampled_from(NAMES)


class Client:
    """One that follows the protocol as far as the rules let it."""

    def __init__(self, name: str, *, is_static: bool) -> None:
        self.instance_id = name if is_static else None
        self.reset()

    def reset(self) -> None:
        self.member_id = ""
        self.generation_id = -1
        self.joining: Any = None
        self.syncing: Any = None
        self.plan: dict[str, bytes] = {}
        self.owned: frozenset[int] | None = None


class ClassicLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.group = Members(GroupStage())
        # Two of them are static.
        self.clients = {name: Client(name, is_static=name in "ab") for name in NAMES}
        # What was told as whose in which generation: it may be told again, but not another way.
        self.told: dict[tuple[int, str], frozenset[int]] = {}
        self.persisted_generation = 0

    # What clients do

    @rule(name=clients)
    def join(self, name: str) -> None:
        client = self.clients[name]
        if waits(client.joining) or waits(client.syncing):
            return
        client.owned = None
        answer = self.group.join(client.member_id, instance_id=client.instance_id)
        assert not isinstance(answer, ErrorCode), answer
        client.joining, client.syncing = answer, None
        self._hear()

    @rule(name=clients)
    def sync(self, name: str) -> None:
        client = self.clients[name]
        if client.generation_id < 0 or waits(client.joining) or waits(client.syncing):
            return
        answer = self.group.sync(
            client.member_id,
            client.generation_id,
            client.plan,
            group_instance_id=client.instance_id,
        )
        if isinstance(answer, ErrorCode):
            self._refused(client, answer)
        else:
            client.syncing = answer
        self._hear()

    @rule(name=clients)
    def heartbeat(self, name: str) -> None:
        client = self.clients[name]
        if client.generation_id < 0 or waits(client.joining):
            return
        code = self.group.heartbeat(client.member_id, client.generation_id, client.instance_id)
        if code is ErrorCode.NONE:
            assert client.generation_id == self.group.group.generation_id
        elif code is not ErrorCode.REBALANCE_IN_PROGRESS:
            self._refused(client, code)

    @rule(name=clients)
    def leave(self, name: str) -> None:
        client = self.clients[name]
        if client.member_id and "g" in self.group.stage.machine.groups:
            self.group.leave(client.member_id, client.instance_id)
            client.reset()
            self._hear()

    @rule(name=clients)
    def fall_silent_and_start_again(self, name: str) -> None:
        self.clients[name].reset()

    @rule(name=clients, age=st.integers(1, 3))
    def a_stale_generation_is_refused(self, name: str, age: int) -> None:
        client = self.clients[name]
        if client.generation_id < 0:
            return
        stale = self.group.group.generation_id - age
        for code in (
            self.group.heartbeat(client.member_id, stale, client.instance_id),
            self.group.sync(client.member_id, stale, group_instance_id=client.instance_id),
            self.group.commit(client.member_id, max(stale, 0), client.instance_id),
        ):
            assert code in (
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_INSTANCE_ID,
            ), code

    @rule(names=st.lists(clients, min_size=1, unique=True), rounds=st.integers(1, 8))
    def follow_the_protocol(self, names: list[str], rounds: int) -> None:
        """As clients do that are well: most groups become stable by this."""
        for _ in range(rounds):
            for name in names:
                client = self.clients[name]
                if client.generation_id < 0 or self._is_rebalancing(client):
                    self.join(name)
                elif client.owned is None:
                    self.sync(name)
            self.time_passes(500)

    def _is_rebalancing(self, client: Client) -> bool:
        if waits(client.joining) or waits(client.syncing):
            return False
        code = self.group.heartbeat(client.member_id, client.generation_id, client.instance_id)
        if code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._refused(client, code)
        return code is not ErrorCode.NONE

    # What happens to all

    @rule(milliseconds=st.sampled_from([1, 500, 3_000, 6_000, 31_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.group.stage.advance_ms(milliseconds)
        self._hear()

    @rule()
    def restart(self) -> None:
        """Whoever waits loses its connection; what was told stays true."""
        for client in self.clients.values():
            if waits(client.joining) or waits(client.syncing):
                client.joining = client.syncing = None
        self.group.stage.restart()

    # What clients hear

    def _refused(self, client: Client, code: ErrorCode) -> None:
        client.owned = None
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.reset()
        else:
            assert code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS), code
            client.generation_id = -1

    def _hear(self) -> None:
        for client in self.clients.values():
            if client.joining is not None and not waits(client.joining):
                self._joined(client, _response(client.joining))
                client.joining = None
            if client.syncing is not None and not waits(client.syncing):
                self._synced(client, _response(client.syncing))
                client.syncing = None

    def _joined(self, client: Client, answer: Any) -> None:  # noqa: ANN401  # JoinGroupResponse
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error_code:
            self._refused(client, ErrorCode(answer.error_code))
        else:
            client.member_id = answer.member_id
            client.generation_id = answer.generation_id
            client.plan = {}
            if answer.leader == answer.member_id:
                ids = sorted(each.member_id for each in answer.members)
                assert client.member_id in ids
                client.plan = {
                    each: bytes(range(number, PARTITIONS, len(ids)))
                    for number, each in enumerate(ids)
                }

    def _synced(self, client: Client, answer: Any) -> None:  # noqa: ANN401  # SyncGroupResponse
        if answer.error_code:
            self._refused(client, ErrorCode(answer.error_code))
            return
        client.owned = frozenset(answer.assignment)
        told = self.told.setdefault((client.generation_id, client.member_id), client.owned)
        assert told == client.owned, "another assignment for the same generation"

    # What must hold

    @invariant()
    def one_owner_per_partition_and_generation(self) -> None:
        owners: dict[tuple[int, int], str] = {}
        for client in self.clients.values():
            for partition in client.owned or ():
                place = (client.generation_id, partition)
                assert owners.setdefault(place, client.member_id) == client.member_id

    @invariant()
    def the_group_agrees_with_itself(self) -> None:
        if "g" not in self.group.stage.machine.groups:
            return
        group = self.group.group
        joining = [each for each in group.members.values() if each.joining is not None]
        assert group.joining_count == len(joining)
        assert bool(group.members) == (group.state is not ClassicState.EMPTY) or (
            group.state is ClassicState.PREPARING_REBALANCE
        )
        assert not joining or group.state is ClassicState.PREPARING_REBALANCE
        assert group.leader_id in group.members if group.members else group.leader_id is None
        assert group.static_members == {
            each.instance_id: each.member_id
            for each in group.members.values()
            if each.instance_id is not None
        }
        assert not group.members.keys() & group.pending_members.keys()
        waiting = sum(
            (each.joining is not None) + (each.syncing is not None)
            for each in group.members.values()
        )
        assert len(self.group.stage.shard.deferred) == waiting

    @invariant()
    def persisted_generations_only_grow(self) -> None:
        if "g" in self.group.stage.machine.groups:
            group = self.group.group
            if group.state in (ClassicState.STABLE, ClassicState.EMPTY):
                assert group.generation_id >= self.persisted_generation
                self.persisted_generation = group.generation_id


def _response(answer: Any) -> Any:  # noqa: ANN401  # as the machine
    return answer.response if isinstance(answer, Deferred) else answer


TestClassicLife = ClassicLife.TestCase
TestClassicLife.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
