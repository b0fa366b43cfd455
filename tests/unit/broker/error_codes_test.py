"""Errors are found wherever the response of an API has them."""

import pytest

from runnel.broker.api_table import api_table
from runnel.broker.error_codes import look_of
from runnel.wire.apis import ApiKey, response_type
from runnel.wire.messages.api_versions import ApiVersionsResponse
from runnel.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from runnel.wire.messages.heartbeat import HeartbeatResponse
from runnel.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def errors_in(response: object) -> list[int]:
    look, found = look_of(type(response)), list[int]()
    assert look is not None
    look(response, found.append)
    return found


def test_errors_of_the_whole_and_of_its_parts_are_found() -> None:
    assert errors_in(HeartbeatResponse(error_code=27)) == [27]
    assert errors_in(HeartbeatResponse()) == []
    topics = [CreatableTopicResult(error_code=code) for code in (36, 0, 17)]
    assert errors_in(CreateTopicsResponse(topics=topics)) == [36, 17]
    partitions = [MetadataResponsePartition(error_code=code) for code in (5, 0)]
    topic = MetadataResponseTopic(error_code=3, partitions=partitions)
    assert errors_in(MetadataResponse(topics=[topic])) == [3, 5]
    assert errors_in(ApiVersionsResponse(error_code=35)) == [35]


def test_lists_that_may_be_missing_do_no_harm() -> None:
    response = MetadataResponse()
    response.topics = None  # type: ignore[assignment]  # as a nullable list may be
    assert errors_in(response) == []


@pytest.mark.parametrize("key", [row.key for row in api_table()], ids=lambda key: ApiKey(key).name)
def test_a_response_without_an_error_has_none_to_find(key: ApiKey) -> None:
    response = response_type(key)
    look = look_of(response)
    if look is not None:
        look(response(), lambda code: pytest.fail(f"{code} in a response without an error"))
