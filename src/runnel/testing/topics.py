"""Topics of a test broker, made and deleted over the wire; apart, because it brings the codecs."""

from collections.abc import Mapping

from runnel.client.raw import Address, WireClient
from runnel.errors import ErrorCode
from runnel.testing.failure import BrokerError
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

TIMEOUT_MS = 30_000


def create_topic(address: Address, name: str, partitions: int, config: Mapping[str, str]) -> None:
    """Returns when the topic can be used. Raises BrokerError."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=text) for key, text in config.items()],
    )
    with _connected(address) as client:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        (result,) = client.call(request).topics
    _require(result.error_code, f"topic {name!r} was not created", result.error_message)


def delete_topic(address: Address, name: str, *, missing_ok: bool) -> None:
    with _connected(address) as client:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
        (result,) = client.call(request).responses
    if missing_ok and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return
    _require(result.error_code, f"topic {name!r} was not deleted", result.error_message)


def _connected(address: Address) -> WireClient:
    try:
        return WireClient(address)
    except OSError as error:
        raise BrokerError(f"no broker answers on {address[0]}:{address[1]}: {error}") from None


def _require(code: int, what: str, why: str | None) -> None:
    if code:
        reason = ErrorCode(code).name
        raise BrokerError(f"{what}: {reason}: {why}" if why else f"{what}: {reason}")
