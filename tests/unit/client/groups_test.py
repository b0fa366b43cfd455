"""What members of a classic group own, read from what their leader wrote."""

from runnel.client.groups import owned_of
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)


def written(version: int) -> bytes:
    rows = [TopicPartition(topic="orders", partitions=[2, 0])]
    body = codec_for(ConsumerProtocolAssignment, min(version, 3)).write(
        ConsumerProtocolAssignment(assigned_partitions=rows)
    )
    return version.to_bytes(2, "big") + body


def test_assignments() -> None:
    for version in (0, 1, 3, 9):  # one from the future is read as the newest that is known
        assert owned_of(written(version)) == {"orders": [0, 2]}


def test_what_is_no_assignment_of_a_consumer() -> None:
    for data in (b"", b"\0", b"\0\1\x7f\xff\xff\xff", b"{}", written(1)[:-9]):
        assert owned_of(data) == {}
