"""Goal: every setting that may change while the broker runs does what it says, from then on.

Method: each dynamic name is set over the wire on a broker that is up, and the experiment of that
name (`tests/support/effects.py`) sees another behaviour, not just the echo of the value. A name
without an experiment has a reason in one of the lists here, and the counts are printed.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from runnel.broker.listener import Listener
from runnel.config.registry import BROKER, GROUP, TOPIC
from runnel.config.support import AWAITED, SYNONYMS
from runnel.errors import ErrorCode
from runnel.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.asking import batch, create, produce
from tests.support.cleaner_effects import BROKER_EXPERIMENTS
from tests.support.configuring import BROKER as BROKER_TYPE
from tests.support.configuring import TOPIC as TOPIC_TYPE
from tests.support.configuring import described, set_configs, unset
from tests.support.desk import Desk, at_desk
from tests.support.effects import (
    EXPERIMENTS,
    SETTINGS,
    Change,
    Experiment,
    partition_of,
    producer_id_expiration_ms,
)
from tests.support.group_effects import assignment_interval_ms
from tests.support.transactions import Sender

DONE = (0, None)
TIERED = "tiered storage, which there is none of"
TIERED_TOPIC_NAMES = {name: TIERED for name in TOPIC if name.startswith(("remote.", "local."))}

# A broker's dynamic names that nothing reads in this release, by how they begin.
NO_EFFECT: dict[str, str] = {
    "background.threads": "one thread serves all",
    "num.": "one thread serves all",
    "config.providers": "names Java classes: only the default is accepted",
    "metric.reporters": "names Java classes: only the default is accepted",
    "principal.builder.class": "names Java classes: only the default is accepted",
    "listener.security.protocol.map": "only with a restart",
    "listeners": "only with a restart",
    "follower.fetch.last.tiered.offset.enable": TIERED,
    "remote.": TIERED,
    "log.local.": TIERED,
    "follower.replication.throttled.rate": "replication",
    "leader.replication.throttled.rate": "replication",
    "unclean.leader.election.enable": "replication",
    "group.coordinator.": "a journal record is written at once",
    "group.share.": "share groups",
    "group.streams.": "streams groups",
    "share.coordinator.": "share groups",
    "sasl.": "authentication",
    "ssl.": "TLS",
}


def listener_of(desk: Desk) -> Any:  # noqa: ANN401  # its private parts are looked at
    polling: Any = None
    nowhere: Any = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 0), fileno=lambda: -1)
    loop: Any = SimpleNamespace(
        time=lambda: 1.5, remove_reader=lambda _fd: None, call_later=lambda *_: None
    )
    return Listener(loop, "PLAINTEXT", nowhere, desk.broker, polling)


async def max_connections(desk: Desk, change: Change) -> None:
    listener = listener_of(desk)
    listener._transports = {object(): None, object(): None}
    assert listener._refusal("10.0.0.1") == ""
    await change("2")
    assert "max.connections=2" in listener._refusal("10.0.0.1")


async def max_connections_per_ip(desk: Desk, change: Change) -> None:
    listener = listener_of(desk)
    listener._per_host["10.0.0.1"] = 2
    assert listener._refusal("10.0.0.1") == ""
    await change("2")
    assert "max.connections.per.ip=2" in listener._refusal("10.0.0.1")
    assert listener._refusal("10.0.0.2") == ""


async def max_connections_per_ip_overrides(desk: Desk, change: Change) -> None:
    listener = listener_of(desk)
    listener._per_host.update({"10.0.0.1": 2, "10.0.0.2": 2})
    assert listener._refusal("10.0.0.1") == ""
    await change("10.0.0.1:2,10.0.0.3:7")
    assert "max.connections.per.ip=2" in listener._refusal("10.0.0.1")
    assert listener._refusal("10.0.0.2") == ""


async def max_connection_creation_rate(desk: Desk, change: Change) -> None:
    listener = listener_of(desk)
    assert listener._may_accept()
    listener._accepted_in_second = 3
    await change("3")
    assert not listener._may_accept()
    listener._accepted_in_second = 2
    assert listener._may_accept()


async def alter_log_dirs_rate(desk: Desk, change: Change) -> None:
    await create(desk)
    for _ in range(5):
        await produce(desk, batch(bytes(800_000)))
    partition = partition_of(desk)

    async def moves_within(seconds: float, path: str) -> bool:
        desk.broker._log_dirs.move(partition.topic_partition, path)
        await asyncio.sleep(seconds)
        return partition.log.folder.startswith(path)

    assert await moves_within(1, "/more")
    await change("1000000")
    assert not await moves_within(2, "/data")
    assert await moves_within(6, "/data")


async def verification_enable(desk: Desk, change: Change) -> None:
    await create(desk)
    sender = Sender(desk, is_new=False)
    await sender.init()
    assert (await sender.produce(b"x")).error_code == ErrorCode.INVALID_TXN_STATE
    await change("false")
    assert (await sender.produce(b"x")).error_code == 0


def broker_experiments() -> dict[str, Experiment]:
    found: dict[str, Experiment] = {
        "group.consumer.assignment.interval.ms": assignment_interval_ms,
        "max.connection.creation.rate": max_connection_creation_rate,
        "max.connections": max_connections,
        "max.connections.per.ip": max_connections_per_ip,
        "max.connections.per.ip.overrides": max_connections_per_ip_overrides,
        "producer.id.expiration.ms": producer_id_expiration_ms,
        "replica.alter.log.dirs.io.max.bytes.per.second": alter_log_dirs_rate,
        **BROKER_EXPERIMENTS,
        "transaction.partition.verification.enable": verification_enable,
    }
    for name, experiment in EXPERIMENTS.items():
        for broker_name, factor in SYNONYMS[name]:
            if BROKER[broker_name].is_dynamic:
                assert factor == 1
                found[broker_name] = experiment
    return found


def no_effect(name: str) -> str | None:
    return next((why for start, why in NO_EFFECT.items() if name.startswith(start)), None)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_a_topics_setting_takes_effect(name: str) -> None:
    async def test(desk: Desk) -> None:
        async def change(value: str) -> None:
            assert await set_configs(desk, TOPIC_TYPE, "t", {name: value}) == DONE

        await EXPERIMENTS[name](desk, change)

    at_desk(test, SETTINGS)


@pytest.mark.parametrize("resource", ["", "1"])
@pytest.mark.parametrize("name", sorted(broker_experiments()))
def test_a_brokers_setting_takes_effect(name: str, resource: str) -> None:
    async def test(desk: Desk) -> None:
        async def change(value: str) -> None:
            assert await set_configs(desk, BROKER_TYPE, resource, {name: value}) == DONE

        await broker_experiments()[name](desk, change)
        assert await unset(desk, BROKER_TYPE, resource, name) == DONE
        assert desk.broker.settings.log == desk.broker._started.log

    at_desk(test, {**SETTINGS, "log.dirs": "/data,/more"})


def test_a_cordoned_folder_gets_no_new_logs() -> None:
    async def test(desk: Desk) -> None:
        async def folders(topic: str) -> set[str]:
            await create(desk, topic, 4)
            logs = [desk.broker.partitions.get(topic, index).log for index in range(4)]
            return {log.folder.split("/")[1] for log in logs}

        name = "cordoned.log.dirs"
        assert await folders("before") == {"a", "b"}
        assert await set_configs(desk, BROKER_TYPE, "1", {name: "/a"}) == DONE
        assert await folders("cordoned") == {"b"}
        response = await desk.ask(DescribeLogDirsRequest(topics=None))
        assert {r.log_dir: r.is_cordoned for r in response.results} == {"/a": True, "/b": False}
        for wrong in ("/c", "/a,/b"):
            code, why = await set_configs(desk, BROKER_TYPE, "1", {name: wrong})
            assert code == ErrorCode.INVALID_REQUEST and why and name in why
        assert await unset(desk, BROKER_TYPE, "1", name) == DONE
        assert await folders("after") == {"a"}, "where fewer logs are"

    at_desk(test, {"log.dirs": "/a,/b"})


@pytest.mark.parametrize("name", sorted(AWAITED))
def test_what_waits_for_a_feature_is_kept_and_described(name: str) -> None:
    values = {"list": "0:1,1:1", "boolean": "true", "double": "0.25"}
    value = values.get(TOPIC[name].type, "12345")

    async def test(desk: Desk) -> None:
        await create(desk)
        assert await set_configs(desk, TOPIC_TYPE, "t", {name: value}) == DONE
        assert (await described(desk, TOPIC_TYPE, "t", name))[name].value == value

    at_desk(test)


def test_a_topics_own_word_stands_against_its_brokers() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, retention_ms="7000")
        await create(desk, "u")
        await set_configs(desk, BROKER_TYPE, "1", {"log.retention.ms": "5000"})
        assert partition_of(desk).log.config.retention_ms == 7000
        assert desk.broker.partitions.get("u", 0).log.config.retention_ms == 5000
        await unset(desk, TOPIC_TYPE, "t", "retention.ms")
        assert partition_of(desk).log.config.retention_ms == 5000

    at_desk(test)


def test_every_dynamic_name_has_an_effect_or_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    topics = {name for name, d in TOPIC.items() if d.is_dynamic}
    assert set(EXPERIMENTS) | set(AWAITED) | set(TIERED_TOPIC_NAMES) == topics
    assert not set(EXPERIMENTS) & (set(AWAITED) | set(TIERED_TOPIC_NAMES))
    brokers = {name for name, d in BROKER.items() if d.is_dynamic}
    shown = {*broker_experiments(), "cordoned.log.dirs"}
    idle = {name: why for name in brokers - shown if (why := no_effect(name))}
    assert shown | set(idle) == brokers
    assert not any(no_effect(name) for name in shown)
    for start in NO_EFFECT:
        assert any(name.startswith(start) for name in idle), f"{start} is no name"
    for name in shown:
        assert BROKER[name].status == "honoured", name
    groups = [name for name, d in GROUP.items() if d.is_dynamic]
    with capsys.disabled():
        print(
            f"\ndynamic topic settings: {len(EXPERIMENTS)} with effect, {len(AWAITED)} kept for "
            f"what comes, {len(TIERED_TOPIC_NAMES)} of tiered storage; broker settings: "
            f"{len(shown)} with effect, {len(idle)} without (of {len(brokers)}); "
            f"{len(groups)} group settings kept"
        )
