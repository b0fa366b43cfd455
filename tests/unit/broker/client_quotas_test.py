"""Goal: quotas set over the wire are described, bind at once, and make their client wait.

Method: a broker on virtual time, asked with real wire messages. The rules of what may be set and
how it is found are Kafka's (ClientQuotaControlManager, ClientQuotasImage).
"""

import asyncio
from typing import Any

import pytest

from runnel.broker.connection import Mute
from runnel.broker.topics import Topics
from runnel.client.raw import encode_frame
from runnel.cluster.topics import NewPartitions
from runnel.errors import ErrorCode
from runnel.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from runnel.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from runnel.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from runnel.wire.messages.metadata import MetadataRequest
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import FETCH_BY_NAME, batch, create, fetch_request, values_of
from tests.support.desk import Desk, at_desk

Names = dict[str, str | None]
DESK: Names = {"client-id": "desk"}


async def alter(
    desk: Desk, entity: Names, validate_only: bool = False, /, **values: float | None
) -> tuple[int, str | None]:
    entry = AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    (result,) = (await desk.ask(request)).entries
    assert {each.entity_type: each.entity_name for each in result.entity} == entity
    return result.error_code, result.error_message


async def describe(
    desk: Desk, *components: tuple[str, int, str | None], strict: bool = False
) -> Any:  # noqa: ANN401
    asked = [
        ComponentData(entity_type=kind, match_type=how, match=name)
        for kind, how, name in components
    ]
    return await desk.ask(DescribeClientQuotasRequest(components=asked, strict=strict))


async def found(
    desk: Desk, *components: tuple[str, int, str | None], strict: bool = False
) -> list[tuple[Names, dict[str, float]]]:
    response = await describe(desk, *components, strict=strict)
    assert response.error_code == 0, response.error_message
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries
    ]


def test_quotas_are_set_changed_and_removed() -> None:
    async def test(desk: Desk) -> None:
        weird = {"user": "a/b=c d%", "client-id": None}
        assert await alter(desk, weird, producer_byte_rate=5, request_percentage=0.5) == (0, None)
        assert await found(desk) == [(weird, {"producer_byte_rate": 5, "request_percentage": 0.5})]
        assert await alter(desk, weird, producer_byte_rate=7, request_percentage=None) == (0, None)
        assert await found(desk) == [(weird, {"producer_byte_rate": 7})]
        assert await alter(desk, weird, True, producer_byte_rate=8) == (0, None)
        assert await found(desk) == [(weird, {"producer_byte_rate": 7})]
        assert await alter(desk, weird, producer_byte_rate=None, consumer_byte_rate=None) == (
            0,
            None,
        )
        assert await found(desk) == []
        assert not desk.broker.quotas.is_active

    at_desk(test)


@pytest.mark.parametrize(
    ("entity", "values", "why"),
    [
        ({}, {"producer_byte_rate": 1}, "empty client quota entity"),
        ({"planet": "x"}, {"producer_byte_rate": 1}, "Unhandled client quota entity type: planet"),
        ({"ip": "10.0.0.1", "user": "x"}, {"connection_creation_rate": 1}, "IP entity should not"),
        ({"ip": "no address"}, {"connection_creation_rate": 1}, "not a valid IP"),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1}, "Invalid configuration key"),
        ({"user": "x"}, {"connection_creation_rate": 1}, "Invalid configuration key"),
        ({"user": "x"}, {"bad_key": 1}, "Invalid configuration key bad_key"),
        ({"user": "x"}, {"producer_byte_rate": 0.0}, "must be greater than 0"),
        ({"user": "x"}, {"request_percentage": -1.0}, "must be greater than 0"),
        ({"user": "x"}, {"request_percentage": float("nan")}, "must be greater than 0"),
        ({"user": "x"}, {"request_percentage": float("inf")}, "must be greater than 0"),
        ({"user": "x"}, {"consumer_byte_rate": 1.5}, "cannot be a fractional value"),
        ({"user": "x"}, {"consumer_byte_rate": 1e30}, "too large"),
        ({"user": "x" * 2000}, {"consumer_byte_rate": 1}, "at most 1024"),
    ],
)
def test_what_is_no_quota_is_refused_and_changes_nothing(
    entity: Names, values: dict[str, float], why: str
) -> None:
    async def test(desk: Desk) -> None:
        code, message = await alter(desk, entity, **values)
        assert code == ErrorCode.INVALID_REQUEST
        assert message is not None and why in message
        assert await found(desk) == []

    at_desk(test)


def test_one_wrong_alteration_does_not_stop_the_others() -> None:
    async def test(desk: Desk) -> None:
        def entry(name: str, *rates: float) -> AlterClientQuotasRequestEntryData:
            return AlterClientQuotasRequestEntryData(
                entity=[AlterClientQuotasRequestEntityData(entity_type="user", entity_name=name)],
                ops=[OpData(key="producer_byte_rate", value=rate) for rate in rates],
            )

        request = AlterClientQuotasRequest(
            entries=[entry("a", 1.0), entry("b", -1.0), entry("c", 1.0, 2.0), entry("a", 5.0)]
        )
        response = await desk.ask(request)
        told = {each.entity[0].entity_name: each.error_message for each in response.entries}
        assert "duplicate entity" in told["a"]
        assert "greater than 0" in told["b"]
        assert "Duplicate quota key" in told["c"]
        assert await found(desk) == [({"user": "a"}, {"producer_byte_rate": 1})]

    at_desk(test)


def test_filters() -> None:
    async def test(desk: Desk) -> None:
        entities: dict[str, Names] = {
            "a": {"user": "a"},
            "d": {"user": None},
            "ax": {"user": "a", "client-id": "x"},
            "x": {"client-id": "x"},
        }
        for entity in entities.values():
            assert await alter(desk, entity, producer_byte_rate=1) == (0, None)
        assert await alter(desk, {"ip": "::1"}, connection_creation_rate=1) == (0, None)

        async def names(*components: tuple[str, int, str | None], strict: bool = False) -> str:
            rows = await found(desk, *components, strict=strict)
            known = [
                key for key, entity in entities.items() if (entity in [row[0] for row in rows])
            ]
            assert len(rows) == len(known) or ("ip", 2, None) in components or not components
            return " ".join(known)

        assert await names() == "a d ax x"
        assert await names(strict=True) == ""
        assert await names(("user", 0, "a")) == "a ax"
        assert await names(("user", 0, "a"), strict=True) == "a"
        assert await names(("user", 1, None)) == "d"
        assert await names(("user", 2, None)) == "a d ax"
        assert await names(("client-id", 0, "x")) == "ax x"
        assert await names(("client-id", 2, None), ("user", 0, "a"), strict=True) == "ax"
        assert await found(desk, ("ip", 2, None)) == [
            ({"ip": "::1"}, {"connection_creation_rate": 1})
        ]

    at_desk(test)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", 0, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 2, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("user", 1, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", 2, None), ("user", 1, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_filter_that_contradicts_itself(
    components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    async def test(desk: Desk) -> None:
        response = await describe(desk, *components)
        assert (response.error_code, response.entries) == (code, None)
        assert response.error_message

    at_desk(test)


async def is_heard_after_ms(desk: Desk) -> int:
    """How long a request of this connection waits for its turn."""
    began_ms = desk.clock.monotonic_ms()
    await desk.ask(MetadataRequest(topics=[]))
    return desk.clock.monotonic_ms() - began_ms


def produce_request(records: bytes, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


@pytest.mark.parametrize("durability", ["os", "ack"])
def test_a_producer_is_answered_and_then_not_heard(durability: str) -> None:
    """At once with `os`; with `ack` the answer waits for an fsync and is charged when it leaves."""

    async def test(desk: Desk) -> None:
        await create(desk, runnel_durability=durability)
        assert await alter(desk, DESK, producer_byte_rate=1000) == (0, None)
        request = produce_request(batch(b"x" * 3000))
        size = len(encode_frame(request, 12, client_id="desk")) - 4
        response = await desk.ask(request, 12)
        assert response.responses[0].partition_responses[0].error_code == 0
        assert response.throttle_time_ms == size
        assert desk.connection.mute & Mute.THROTTLE and not desk.connection.wants_bytes
        until_ms = desk.clock.monotonic_ms() + response.throttle_time_ms
        assert desk.connection.throttled_until_ms == until_ms
        await asyncio.sleep(size / 1000 - 0.01)
        assert not desk.connection.wants_bytes
        await asyncio.sleep(0.02)
        assert desk.connection.wants_bytes
        assert await is_heard_after_ms(desk) == 0

    at_desk(test)


def test_others_are_heard_meanwhile() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await alter(desk, DESK, producer_byte_rate=1000) == (0, None)
        await desk.ask(produce_request(batch(b"x" * 3000)), 12)
        other = Desk(desk.broker, desk.clock, client_id="other")
        assert (await other.ask(produce_request(batch(b"x" * 9000)), 12)).throttle_time_ms == 0
        same = Desk(desk.broker, desk.clock)
        response = await same.ask(produce_request(batch(b"x" * 1000)), 12)
        assert response.throttle_time_ms > 4000, "another connection of the same client owes, too"

    at_desk(test)


def test_frames_that_came_already_wait_too() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await alter(desk, DESK, producer_byte_rate=1000) == (0, None)
        frame = encode_frame(produce_request(batch(b"x" * 900)), 12, client_id="desk")
        began_ms = desk.clock.monotonic_ms()
        desk.put(2 * frame)
        await desk.next_frame()
        assert desk.clock.monotonic_ms() == began_ms and not desk.has_reply
        await desk.next_frame()
        assert desk.clock.monotonic_ms() - began_ms == len(frame) - 4

    at_desk(test)


def test_without_a_reply_there_is_still_a_wait() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await alter(desk, DESK, producer_byte_rate=1000) == (0, None)
        frame = encode_frame(produce_request(batch(b"x" * 900), acks=0), 12, client_id="desk")
        desk.put(frame)
        assert desk.connection.mute & Mute.THROTTLE

    at_desk(test)


def test_a_throttle_is_no_longer_than_all_windows() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await alter(desk, DESK, producer_byte_rate=1) == (0, None)
        response = await desk.ask(produce_request(batch(b"x" * 900)), 12)
        assert response.throttle_time_ms == 6000

    at_desk(test, {"quota.window.num": "3", "quota.window.size.seconds": "2"})


def test_a_consumer_is_given_a_windows_worth_and_then_not_heard() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        records = [batch(b"%04d" % n * 100) for n in range(10)]
        for each in records:
            await desk.ask(produce_request(each), 12)
        size = len(records[0])
        assert await alter(desk, DESK, consumer_byte_rate=3 * size) == (0, None)
        response = await desk.ask(fetch_request(), FETCH_BY_NAME)
        assert len(values_of(response)) == 3
        assert response.throttle_time_ms == 1000
        assert desk.connection.mute & Mute.THROTTLE
        await asyncio.sleep(1.001)
        assert desk.connection.wants_bytes
        response = await desk.ask(fetch_request(3, max_wait_ms=0), FETCH_BY_NAME)
        assert values_of(response)[0] == b"0003" * 100

    at_desk(test)


def test_a_parked_fetch_is_charged_when_it_is_answered() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await alter(desk, DESK, consumer_byte_rate=100) == (0, None)
        asked = asyncio.ensure_future(desk.ask(fetch_request(max_wait_ms=5000), FETCH_BY_NAME))
        await asyncio.sleep(1)
        assert not desk.connection.mute & Mute.THROTTLE
        other = Desk(desk.broker, desk.clock, client_id="other")
        records = batch(b"x" * 500)
        await other.ask(produce_request(records), 12)
        assert (await asked).throttle_time_ms == 10 * len(records)
        assert desk.connection.mute & Mute.THROTTLE

    at_desk(test)


def test_time_on_the_loop() -> None:
    """One percent: a request that takes 20 ms, of which the first 10 are a window's credit."""

    async def test(desk: Desk) -> None:
        assert await alter(desk, DESK, request_percentage=1) == (0, None)
        times = iter([0.0, 0.02, 0.02, 5.0])
        desk.monotonic = lambda: next(times)  # type: ignore[method-assign]  # what a request takes
        assert (await desk.ask(MetadataRequest(topics=[]))).throttle_time_ms == 1000
        desk.reconnect()
        assert (await desk.ask(MetadataRequest(topics=[]))).throttle_time_ms == 1000, "at most"

    at_desk(test)


def creation(*names: str, partitions: int = 5) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ]
    )


def test_creating_beyond_the_quota_is_refused_and_changes_nothing() -> None:
    async def test(desk: Desk) -> None:
        assert await alter(desk, DESK, controller_mutation_rate=1) == (0, None)
        response = await desk.ask(creation("no/good", "a", "b", "c", "d"))
        codes = [topic.error_code for topic in response.topics]
        refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        # Eleven at once; the third is admitted because the account was not yet below zero.
        assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0, 0, 0, refused]
        assert response.throttle_time_ms == 4000
        assert sorted(desk.broker.partitions.topic_names.values()) == ["a", "b", "c"]
        await asyncio.sleep(4)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in "ab"])
        response = await desk.ask(deletion)
        assert [each.error_code for each in response.responses] == [0, refused]
        assert response.throttle_time_ms == 5000

    at_desk(test)


def test_a_topic_that_is_deleted_while_it_is_to_grow_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(desk: Desk) -> None:
        await desk.ask(creation("a", partitions=1))
        assert await alter(desk, DESK, controller_mutation_rate=1) == (0, None)
        add_partitions = Topics.add_partitions

        async def add_and_lose(topics: Topics, new: NewPartitions, *, validate_only: bool) -> None:
            await add_partitions(topics, new, validate_only=validate_only)
            if validate_only:
                await topics.delete(desk.broker._membership.image.topics["a"].id)

        monkeypatch.setattr(Topics, "add_partitions", add_and_lose)
        growth = CreatePartitionsTopic(name="a", count=2, assignments=None)
        (told,) = (await desk.ask(CreatePartitionsRequest(topics=[growth]))).results
        assert told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    at_desk(test)


def test_growing_beyond_the_quota_is_refused() -> None:
    async def test(desk: Desk) -> None:
        await desk.ask(creation("a", "b", partitions=1))
        assert await alter(desk, DESK, controller_mutation_rate=1) == (0, None)
        wanted = [("a", 1), ("a", 14), ("b", 2)]
        told = [
            await desk.ask(
                CreatePartitionsRequest(
                    topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)]
                )
            )
            for name, count in wanted
        ]
        assert [each.results[0].error_code for each in told] == [
            ErrorCode.INVALID_PARTITIONS,
            0,
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ]
        assert [each.throttle_time_ms for each in told] == [0, 0, 2000]

    at_desk(test)


def test_old_versions_are_only_made_to_wait() -> None:
    async def test(desk: Desk) -> None:
        assert await alter(desk, DESK, controller_mutation_rate=1) == (0, None)
        response = await desk.ask(creation("a", "b", "c", "d"), 5)
        assert [topic.error_code for topic in response.topics] == [0, 0, 0, 0]
        assert response.throttle_time_ms == 9000
        assert desk.connection.mute & Mute.THROTTLE

    at_desk(test)


def test_a_throttled_connection_ends_with_the_broker() -> None:
    """`at_desk` stops the broker at the end; the timer of the mute finds nobody."""

    async def test(desk: Desk) -> None:
        await create(desk)
        assert await alter(desk, DESK, producer_byte_rate=1) == (0, None)
        await desk.ask(produce_request(batch(b"x" * 900)), 12)
        desk.close("stopped")
        await asyncio.sleep(20)
        assert desk.connection.mute & Mute.CLOSED

    at_desk(test)
