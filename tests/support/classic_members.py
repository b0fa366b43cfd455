"""Members of a classic group, as tests of the coordinator speak for them."""

from dataclasses import replace
from typing import Any

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.classic_group import ClassicGroup
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from runnel.wire.messages.leave_group import MemberIdentity
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.shards import GroupStage, now, waits

NEWEST_JOIN = 9
SESSION_MS = 10_000
REBALANCE_MS = 30_000
JOIN_DELAY_MS = 3_000


def subscription(*topics: str) -> bytes:
    message = ConsumerProtocolSubscription(topics=list(topics))
    return bytes(2) + codec_for(ConsumerProtocolSubscription, 0).write(message)


def protocols(*names: str, topics: tuple[str, ...] = ("t",)) -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=subscription(*topics)) for name in names]


def join_request(
    member_id: str = "",
    *,
    group_id: str = "g",
    instance_id: str | None = None,
    names: tuple[str, ...] = ("range",),
    topics: tuple[str, ...] = ("t",),
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
    protocol_type: str = "consumer",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=protocols(*names, topics=topics),
    )


class Members:
    """Speaks for all members of group g."""

    def __init__(self, stage: GroupStage, group_id: str = "g") -> None:
        self.stage = stage
        self.group_id = group_id

    @property
    def group(self) -> ClassicGroup:
        group = self.stage.machine.groups[self.group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def join(self, member_id: str = "", *, version: int = NEWEST_JOIN, **given: Any) -> Any:  # noqa: ANN401  # as the machine
        """The answer, or what will be it."""
        return self.ask_to_join(join_request(member_id, group_id=self.group_id, **given), version)

    def ask_to_join(self, request: JoinGroupRequest, version: int = NEWEST_JOIN) -> Any:  # noqa: ANN401  # as the machine
        caller = Caller("client", "/10.0.0.1", version)
        try:
            return self.stage.machine.classic.join(request, caller)
        except RunnelError as error:
            return error.code

    def new_id(self, **given: Any) -> str:  # noqa: ANN401  # as `join`
        """A dynamic member asks for its id, as it must since v4."""
        answer = now(self.join(**given))
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        found: str = answer.member_id
        return found

    def enter(self, **given: Any) -> tuple[str, Any]:  # noqa: ANN401  # as `join`
        """A dynamic member joins: its id, and its answer."""
        member_id = self.new_id(**given)
        return member_id, self.join(member_id, **given)

    def stable(self, count: int = 1) -> list[str]:
        """A group of so many dynamic members, each with an assignment of its own. The leader is
        the first."""
        entered = [self.enter() for _ in range(count)]
        while waits(entered[0][1]):
            self.stage.advance_ms(JOIN_DELAY_MS)
        ids = [member_id for member_id, _ in entered]
        generation_id = now(entered[0][1]).generation_id
        self.sync_all(ids, generation_id)
        return ids

    def sync_all(self, ids: list[str], generation_id: int) -> list[Any]:
        """The first is the leader, and the last to sync."""
        others = [self.sync(member_id, generation_id) for member_id in ids[1:]]
        assignments = {member_id: b"for " + member_id.encode() for member_id in ids}
        return [self.sync(ids[0], generation_id, assignments), *others]

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        **given: Any,  # noqa: ANN401  # other fields of the request
    ) -> Any:  # noqa: ANN401  # as the machine
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation_id,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
            **given,
        )
        try:
            return self.stage.machine.classic.sync(request)
        except RunnelError as error:
            return error.code

    def heartbeat(
        self, member_id: str, generation_id: int, instance_id: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        try:
            return self.stage.machine.classic.heartbeat(request)
        except RunnelError as error:
            return error.code

    def leave(self, member_id: str = "", instance_id: str | None = None) -> ErrorCode:
        identity = MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        try:
            (answer,) = self.stage.machine.classic.leave(self.group_id, [identity])
        except RunnelError as error:
            return error.code
        return ErrorCode(answer.error_code)

    def commit(
        self, member_id: str, generation_id: int, instance_id: str | None = None
    ) -> ErrorCode:
        try:
            self.group.ensure_may_commit(member_id, instance_id, generation_id, 9)
        except RunnelError as error:
            return error.code
        return ErrorCode.NONE


def members(**settings: int) -> Members:
    """A fresh stage with these settings, and nobody in the group yet."""
    return Members(GroupStage(replace(GroupSettings(), **settings)))  # type: ignore[arg-type]  # each is a number
