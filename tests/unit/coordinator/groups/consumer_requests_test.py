"""What a heartbeat changes of its member, and that almost every one changes nothing."""

from dataclasses import replace
from typing import Any

import pytest

from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.consumer_member import ClassicPart, ConsumerMember
from runnel.coordinator.groups.consumer_requests import changed_by
from runnel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CALLER = Caller("app", "/10.0.0.1", 1)
MEMBER = ConsumerMember(
    member_id="a",
    epoch=3,
    instance_id="i",
    rack_id="r",
    rebalance_timeout_ms=1000,
    client_id="app",
    client_host="/10.0.0.1",
    topics=frozenset({"t"}),
    server_assignor="uniform",
)


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_who_says_nothing_new_stays_the_same_member(instance_id: str | None) -> None:
    member = replace(MEMBER, instance_id=instance_id)
    request = ConsumerGroupHeartbeatRequest(instance_id=instance_id)
    assert changed_by(member, request, CALLER) is member


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ({"instance_id": "j"}, {"instance_id": "j"}),
        ({"rack_id": "s"}, {"rack_id": "s"}),
        ({"rebalance_timeout_ms": 7}, {"rebalance_timeout_ms": 7}),
        ({"subscribed_topic_names": ["u", "t"]}, {"topics": frozenset({"t", "u"})}),
        ({"subscribed_topic_names": []}, {"topics": frozenset()}),
        ({"subscribed_topic_regex": "u.*"}, {"regex": "u.*"}),
        ({"server_assignor": "range"}, {"server_assignor": "range"}),
    ],
)
def test_what_is_said_counts_and_nothing_else(
    said: dict[str, Any], becomes: dict[str, Any]
) -> None:
    request = ConsumerGroupHeartbeatRequest(**{"instance_id": "i", **said})
    assert changed_by(MEMBER, request, CALLER) == replace(MEMBER, **becomes)


@pytest.mark.parametrize(
    ("caller", "becomes"),
    [
        (Caller("other", CALLER.host, CALLER.api_version), {"client_id": "other"}),
        (Caller(CALLER.client_id, "/10.0.0.2", CALLER.api_version), {"client_host": "/10.0.0.2"}),
    ],
)
def test_who_calls_from_elsewhere_is_shown_so(caller: Caller, becomes: dict[str, Any]) -> None:
    request = ConsumerGroupHeartbeatRequest(instance_id="i")
    assert changed_by(MEMBER, request, caller) == replace(MEMBER, **becomes)


def test_a_classic_member_that_sends_one_is_classic_no_more() -> None:
    member = replace(MEMBER, classic=ClassicPart(45_000, (("range", b""),)))
    request = ConsumerGroupHeartbeatRequest(instance_id="i")
    assert changed_by(member, request, CALLER) == MEMBER
