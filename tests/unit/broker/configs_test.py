"""What DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources answer."""

import logging

import pytest

from runnel.broker.handlers.config_resources import ResourceType
from runnel.cluster import configs
from runnel.config.alterations import Operation
from runnel.config.effective import Source
from runnel.config.registry import BROKER as BROKER_NAMES
from runnel.config.registry import GROUP as GROUP_NAMES
from runnel.config.registry import TOPIC as TOPIC_NAMES
from runnel.config.support import DYNAMIC_ONLY_NAMES
from runnel.errors import ErrorCode
from runnel.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from runnel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from runnel.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.asking import create
from tests.support.configuring import (
    BROKER,
    TOPIC,
    alter,
    describe,
    described,
    incremental,
    replace,
    set_configs,
    unset,
)
from tests.support.desk import Desk, at_desk

DONE = (0, None)
SET, DELETE, APPEND, SUBTRACT = Operation
GROUP, CLIENT_METRICS = ResourceType.GROUP, ResourceType.CLIENT_METRICS
LOGGER = ResourceType.BROKER_LOGGER


def sources(found: object) -> list[tuple[str, str | None, int]]:
    return [(s.name, s.value, s.source) for s in found.synonyms]  # type: ignore[attr-defined]  # a wire message


def test_a_topic_is_described_with_every_name_its_source_and_synonyms() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "t", retention_ms="1000")
        await set_configs(desk, BROKER, "", {"log.segment.bytes": "2097152"})
        found = await described(desk, TOPIC, "t", synonyms=True)
        assert set(found) == set(TOPIC_NAMES)
        retention, segment, index = (
            found[n] for n in ("retention.ms", "segment.bytes", "index.interval.bytes")
        )
        assert (retention.value, retention.config_source) == ("1000", Source.DYNAMIC_TOPIC)
        assert retention.synonyms[0].name == "retention.ms"
        assert (segment.value, segment.config_source) == ("2097152", Source.DYNAMIC_DEFAULT_BROKER)
        assert sources(segment) == [
            ("log.segment.bytes", "2097152", Source.DYNAMIC_DEFAULT_BROKER),
            ("log.segment.bytes", "1073741824", Source.DEFAULT),
        ]
        assert (index.value, index.config_source) == ("512", Source.STATIC_BROKER)
        assert not any(config.read_only or config.is_sensitive for config in found.values())
        assert all(not c.synonyms for c in (await described(desk, TOPIC, "t")).values())
        assert {config.config_type for config in found.values()} == {1, 2, 3, 5, 6, 7}

    at_desk(test, {"log.index.interval.bytes": "512"})


def test_a_time_in_other_units_counts_as_a_default_as_in_kafka() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        found = await described(desk, TOPIC, "t", "retention.ms", synonyms=True)
        assert found["retention.ms"].value == "7200000"
        assert found["retention.ms"].config_source == Source.DEFAULT
        assert found["retention.ms"].synonyms == []
        await set_configs(desk, BROKER, "1", {"log.retention.ms": "5000"})
        found = await described(desk, TOPIC, "t", "retention.ms", synonyms=True)
        assert found["retention.ms"].value == "5000"
        assert sources(found["retention.ms"]) == [
            ("log.retention.ms", "5000", Source.DYNAMIC_BROKER),
            ("log.retention.hours", "2", Source.STATIC_BROKER),
            ("log.retention.hours", "168", Source.DEFAULT),
        ]

    at_desk(test, {"log.retention.hours": "2"})


@pytest.mark.parametrize("version", range(1, 5))
def test_a_broker_is_described_in_every_version(version: int) -> None:
    async def test(desk: Desk) -> None:
        found = await described(desk, BROKER, "1", version=version)
        assert set(found) == set(BROKER_NAMES) - {d.name for d in DYNAMIC_ONLY_NAMES}
        assert found["broker.id"].value == "1"
        assert found["node.id"].value == "1" and found["node.id"].read_only
        assert found["node.id"].config_source == Source.STATIC_BROKER
        secret = found["ssl.key.password"]
        assert secret.is_sensitive and secret.value is None and not secret.read_only
        assert found["max.connections"].value == "10000"
        assert found["max.connections"].config_type == (3 if version >= 3 else 0)
        default = await described(desk, BROKER, "", version=version)
        assert default == {}

    at_desk(test, {"ssl.key.password": "hush"})


def test_the_layers_of_a_broker_win_in_order_and_go_again() -> None:
    async def test(desk: Desk) -> None:
        async def now() -> tuple[str | None, int]:
            config = (await described(desk, BROKER, "1", "message.max.bytes"))["message.max.bytes"]
            return config.value, config.config_source

        assert await now() == ("100", Source.STATIC_BROKER)
        assert await set_configs(desk, BROKER, "", {"message.max.bytes": "200"}) == DONE
        assert await now() == ("200", Source.DYNAMIC_DEFAULT_BROKER)
        assert await set_configs(desk, BROKER, "1", {"message.max.bytes": "300"}) == DONE
        assert await now() == ("300", Source.DYNAMIC_BROKER)
        (only,) = (await described(desk, BROKER, "", synonyms=True)).values()
        assert (only.name, only.value) == ("message.max.bytes", "200")
        assert [s.source for s in only.synonyms] == [Source.DYNAMIC_DEFAULT_BROKER]
        assert await unset(desk, BROKER, "1", "message.max.bytes") == DONE
        assert await now() == ("200", Source.DYNAMIC_DEFAULT_BROKER)
        assert await replace(desk, BROKER, "", {}) == DONE
        assert await now() == ("100", Source.STATIC_BROKER)
        assert desk.broker.settings.log.max_message_bytes == 100

    at_desk(test, {"message.max.bytes": "100"})


def test_lists_are_added_to_and_taken_from() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)

        async def policy() -> str | None:
            found = await described(desk, TOPIC, "t", "cleanup.policy")
            return found["cleanup.policy"].value

        assert await alter(desk, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == DONE
        assert await policy() == "delete,compact"
        assert await alter(desk, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == DONE
        assert await policy() == "delete,compact"
        assert await alter(desk, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == DONE
        assert await policy() == "compact"
        code, why = await alter(desk, TOPIC, "t", ("retention.ms", APPEND, "5"))
        assert code == ErrorCode.INVALID_CONFIG
        assert why == "Can't APPEND to key retention.ms because its type is not LIST."

    at_desk(test)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_old_api_replaces_the_whole_set(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk, retention_ms="1", runnel_storage="memory")
        answer = await replace(desk, TOPIC, "t", {"segment.ms": "5"}, version=version)
        assert answer == DONE
        stored = desk.broker._membership.image.topics["t"].configs
        assert stored == {"segment.ms": "5", "runnel.storage": "memory"}
        code, why = await replace(desk, LOGGER, "1", {"root": "INFO"}, version=version)
        assert (code, why) == (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")

    at_desk(test)


INVALID = [
    (TOPIC, "t", ("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG,
     "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
    (TOPIC, "t", ("retention.mss", SET, "1"), ErrorCode.INVALID_CONFIG,
     "Unknown topic config name: retention.mss; did you mean retention.ms?"),
    (TOPIC, "t", ("runnel.storage", SET, "memory"), ErrorCode.INVALID_CONFIG,
     "Cannot update these configs dynamically: [runnel.storage]"),
    (TOPIC, "t", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST,
     "Null value not supported for : retention.ms"),
    (TOPIC, "u", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
     "The topic 'u' does not exist."),
    (TOPIC, "a/b", ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION, None),
    (BROKER, "1", ("log.retention.ms", SET, "0"), ErrorCode.INVALID_REQUEST, None),
    (BROKER, "1", ("message.max.bytes", SET, "-1"), ErrorCode.INVALID_REQUEST,
     "Invalid value -1 for configuration message.max.bytes: Value must be at least 0"),
    (BROKER, "1", ("node.id", SET, "5"), ErrorCode.INVALID_REQUEST,
     "Cannot update these configs dynamically: [node.id]"),
    (BROKER, "", ("listeners", SET, "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST,
     "Cannot update these configs at default cluster level, broker id must be specified: "
     "[listeners]"),
    (BROKER, "1", ("listeners", SET, "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST,
     "listeners can only be changed with a restart"),
    (BROKER, "1", ("ssl.key.password", SET, "x"), ErrorCode.INVALID_REQUEST, None),
    (BROKER, "1", ("listener.name.x.ssl.key.password", SET, "x"), ErrorCode.INVALID_REQUEST, None),
    (BROKER, "1", ("max.conections", SET, "5"), ErrorCode.INVALID_REQUEST,
     "Unknown broker config name: max.conections; did you mean max.connections?"),
    (BROKER, "1", ("max.connections.per.ip.overrides", SET, "x"), ErrorCode.INVALID_REQUEST, None),
    (BROKER, "1", ("num.io.threads", SET, "17"), ErrorCode.INVALID_REQUEST,
     "Dynamic thread count update validation failed for num.io.threads=17, "
     "value should not be greater than double the current value 8"),
    (BROKER, "", ("num.io.threads", SET, "3"), ErrorCode.INVALID_REQUEST, None),
    (BROKER, "2", ("message.max.bytes", SET, "5"), ErrorCode.INVALID_REQUEST, None),
    (BROKER, "one", ("message.max.bytes", SET, "5"), ErrorCode.INVALID_REQUEST,
     "Node id must be an integer, but it is: one"),
    (GROUP, "", ("consumer.session.timeout.ms", SET, "5"), ErrorCode.INVALID_REQUEST,
     "Default group resources are not allowed."),
    (GROUP, "g", ("session.timeout.ms", SET, "5"), ErrorCode.INVALID_CONFIG, None),
    (GROUP, "g", ("consumer.session.timeout.ms", SET, "x"), ErrorCode.INVALID_CONFIG, None),
    (GROUP, "g", ("consumer.session.timeout.ms", SET, "5"), ErrorCode.INVALID_CONFIG,
     "consumer.session.timeout.ms must be greater than or equal to "
     "group.consumer.min.session.timeout.ms"),
    (CLIENT_METRICS, "", ("interval.ms", SET, "1000"), ErrorCode.INVALID_REQUEST,
     "Subscription name can't be empty"),
    (CLIENT_METRICS, "m", ("interval", SET, "1000"), ErrorCode.INVALID_REQUEST,
     "Unknown client metrics configuration: interval"),
    (CLIENT_METRICS, "m", ("interval.ms", SET, "99"), ErrorCode.INVALID_REQUEST, None),
    (CLIENT_METRICS, "m", ("match", SET, "who=me"), ErrorCode.INVALID_CONFIG,
     "Illegal client matching pattern: who=me"),
    (LOGGER, "1", ("runnel.nowhere", SET, "INFO"), ErrorCode.INVALID_CONFIG,
     "Logger runnel.nowhere does not exist!"),
    (LOGGER, "1", ("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG, None),
    (LOGGER, "1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST,
     "Removing the log level of the root logger is not allowed"),
    (LOGGER, "1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST,
     "APPEND operation is not allowed for the BROKER_LOGGER resource"),
    (1, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST, "Unknown resource type 1"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "change", "code", "why"), INVALID)
def test_what_is_wrong_is_refused_and_changes_nothing(
    kind: int,
    name: str,
    change: tuple[str, Operation, str | None],
    code: ErrorCode,
    why: str | None,
) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        level = logging.getLogger().level
        before = desk.broker._membership.image
        answer = await alter(desk, kind, name, change)
        assert answer[0] == code and answer[1]
        assert why is None or answer[1] == why
        assert desk.broker._membership.image is before
        assert logging.getLogger().level == level

    at_desk(test)


def test_nothing_changes_when_only_asked_whether_it_could() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        before = desk.broker._membership.image
        for kind, name, config in (
            (TOPIC, "t", {"retention.ms": "5"}),
            (BROKER, "1", {"max.connections": "5"}),
            (GROUP, "g", {"share.auto.offset.reset": "earliest"}),
            (LOGGER, "1", {"root": "FATAL"}),
        ):
            given: dict[str, str | None] = dict(config)
            assert await set_configs(desk, kind, name, given, validate_only=True) == DONE
        code, _ = await set_configs(desk, TOPIC, "t", {"retention.ms": "x"}, validate_only=True)
        assert code == ErrorCode.INVALID_CONFIG
        assert await replace(desk, TOPIC, "t", {"segment.ms": "5"}, validate_only=True) == DONE
        assert desk.broker._membership.image is before

    at_desk(test)


def test_each_resource_succeeds_or_fails_by_itself() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        parts = [
            incremental(TOPIC, "t", ("retention.ms", SET, "5")),
            incremental(TOPIC, "none", ("retention.ms", SET, "5")),
            incremental(BROKER, "1", ("max.connections", SET, "-1")),
            incremental(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            incremental(GROUP, "twice", ("consumer.session.timeout.ms", SET, "50000")),
            incremental(GROUP, "twice", ("consumer.session.timeout.ms", SET, "50000")),
        ]
        resources = [part.resources[0] for part in parts]
        resources[0].configs *= 1
        response = await desk.ask(IncrementalAlterConfigsRequest(resources=resources))
        assert [r.error_code for r in response.responses] == [
            0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST, 0,
            ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST,
        ]  # fmt: skip
        assert response.responses[-1].error_message == "Each resource must appear at most once."
        assert (await described(desk, TOPIC, "t"))["retention.ms"].value == "5"

    at_desk(test)


def test_a_name_given_twice_is_refused() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        changes = (("retention.ms", SET, "5"), ("retention.ms", DELETE, None))
        code, why = await alter(desk, TOPIC, "t", *changes)
        assert (code, why) == (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        request = incremental(TOPIC, "t", ("retention.ms", SET, "5"))
        request.resources[0].configs[0].config_operation = 9
        (answer,) = (await desk.ask(request)).responses
        assert answer.error_message == "Unknown operations type 9"

    at_desk(test)


def test_groups_and_subscriptions_are_kept_and_listed() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        wanted: dict[str, str | None] = {"consumer.session.timeout.ms": "50000"}
        assert await set_configs(desk, GROUP, "gr/ün", wanted) == DONE
        assert await set_configs(desk, CLIENT_METRICS, "m", {"metrics": "*"}) == DONE
        found = await described(desk, GROUP, "gr/ün", synonyms=True)
        assert set(found) == set(GROUP_NAMES)
        timeout, beat = (
            found["consumer.session.timeout.ms"],
            found["consumer.heartbeat.interval.ms"],
        )
        assert (timeout.value, timeout.config_source) == ("50000", Source.GROUP)
        assert (beat.value, beat.config_source) == ("7000", Source.STATIC_BROKER)
        broker_default = ("group.consumer.session.timeout.ms", "45000", Source.DEFAULT)
        assert sources(timeout)[1:] == [broker_default]
        metrics = (await described(desk, CLIENT_METRICS, "m"))["metrics"]
        assert (metrics.value, metrics.config_source) == ("*", Source.CLIENT_METRICS)

        async def listed(*types: int, version: int = 1) -> list[tuple[int, str]]:
            request = ListConfigResourcesRequest(resource_types=list(types))
            response = await desk.ask(request, version)
            assert response.error_code == 0
            return [(r.resource_type, r.resource_name) for r in response.config_resources]

        assert await listed() == [(2, "t"), (4, "1"), (8, "1"), (16, "m"), (32, "gr/ün")]
        assert await listed(GROUP, TOPIC) == [(32, "gr/ün"), (2, "t")]
        assert await listed(version=0) == [(16, "m")]
        refused = await desk.ask(ListConfigResourcesRequest(resource_types=[3]))
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert await unset(desk, GROUP, "gr/ün", "consumer.session.timeout.ms") == DONE
        assert await listed(GROUP) == []

    at_desk(test, {"group.consumer.heartbeat.interval.ms": "7000"})


def test_levels_of_loggers() -> None:
    name = "runnel.broker.upkeep"

    async def test(desk: Desk) -> None:
        answer = await alter(desk, LOGGER, "1", (name, SET, "DEBUG"))
        assert answer == DONE
        assert logging.getLogger(name).level == logging.DEBUG
        found = await described(desk, LOGGER, "1")
        assert (found[name].value, found[name].config_source) == ("DEBUG", Source.BROKER_LOGGER)
        assert "root" in found
        assert await alter(desk, LOGGER, "1", (name, DELETE, None)) == DONE
        assert logging.getLogger(name).level == logging.NOTSET
        result = await describe(desk, LOGGER, "")
        assert result.error_message == "Broker id must not be empty"

    try:
        at_desk(test)
    finally:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_what_cannot_be_described_says_why() -> None:
    async def test(desk: Desk) -> None:
        for kind, name, code in (
            (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            (BROKER, "7", ErrorCode.INVALID_REQUEST),
            (BROKER, "x", ErrorCode.INVALID_REQUEST),
            (GROUP, "", ErrorCode.INVALID_REQUEST),
            (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
            (99, "x", ErrorCode.INVALID_REQUEST),
        ):
            result = await describe(desk, kind, name)
            assert (result.error_code, bool(result.error_message)) == (code, True)
            assert result.configs == []

    at_desk(test)


def test_an_empty_list_of_names_asks_for_all() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        asked = DescribeConfigsResource(resource_type=TOPIC, resource_name="t")
        response = await desk.ask(DescribeConfigsRequest(resources=[asked]))
        assert len(response.results[0].configs) == len(TOPIC_NAMES)
        assert set(await described(desk, TOPIC, "t", "segment.ms", "none")) == {"segment.ms"}

    at_desk(test)


def test_documentation_is_told_to_who_asks() -> None:
    async def test(desk: Desk) -> None:
        broker = DescribeConfigsResource(
            resource_type=BROKER,
            resource_name="1",
            configuration_keys=["runnel.durability", "log.retention.ms", "sasl.login.class"],
        )
        for wanted in (True, False):
            request = DescribeConfigsRequest(resources=[broker], include_documentation=wanted)
            (result,) = (await desk.ask(request)).results
            texts = {config.name: config.documentation for config in result.configs}
            assert len(texts) == 3 and texts["sasl.login.class"] is None
            assert (texts["log.retention.ms"] is not None) == wanted
            assert ("fsync" in (texts["runnel.durability"] or "")) == wanted

    at_desk(test)


def test_whose_settings_were_removed_leaves_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(desk: Desk) -> None:
        wanted: dict[str, str | None] = {"consumer.session.timeout.ms": "50000"}
        group = ResourceType.GROUP
        for name in ("a", "b", "c"):
            assert (await set_configs(desk, group, name, wanted))[0] == 0
        code, message = await set_configs(desk, group, "d", wanted)
        assert code == ErrorCode.POLICY_VIOLATION
        assert "remove some first" in (message or "")
        for name in ("b", "a"):
            assert (await unset(desk, group, name, *wanted))[0] == 0
        assert (await set_configs(desk, group, "d", wanted))[0] == 0
        assert {owner.name for owner in desk.broker._membership.image.configs} == {"a", "c", "d"}
        assert (await set_configs(desk, group, "a", wanted))[0] == 0
        assert (await set_configs(desk, group, "e", wanted))[0] == ErrorCode.POLICY_VIOLATION

    monkeypatch.setattr(configs, "MAX_OWNERS", 3)
    at_desk(test)
