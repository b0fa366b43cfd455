"""The ends of partitions, asked on a connection of their own.

A broker answers the requests of one connection in order, and a consumer's fetch waits there for up
to `fetch_max_wait_ms`: asked behind it, the ends of each partition would take half a second. One
request asks for all partitions of a broker.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # OffsetSpec: not in `__all__`
    AdminClient,
    OffsetSpec,
)

from runnel.client.dependency import confluent_kafka
from runnel.client.failures import ClientTimeoutError, error_of, explained
from runnel.client.offsets import Partition


class Ends:
    """Asks for one consumer; connects when it is first asked."""

    def __init__(self, settings: Mapping[str, Any], isolation_level: str, timeout_s: float) -> None:
        self._admin = AdminClient(dict(settings))
        self._level = (
            confluent_kafka.IsolationLevel.READ_COMMITTED
            if isolation_level == "read_committed"
            else confluent_kafka.IsolationLevel.READ_UNCOMMITTED
        )
        self._timeout_s = timeout_s

    def starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offsets that are kept."""
        return self._asked(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # it has no types

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where the next messages will be written, or the first open transaction begins."""
        return self._asked(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # it has no types

    def _asked(self, partitions: Iterable[Partition], what: OffsetSpec) -> dict[Partition, int]:
        wanted = {confluent_kafka.TopicPartition(*partition): what for partition in partitions}
        if not wanted:
            return {}
        found = self._admin.list_offsets(
            wanted, isolation_level=self._level, request_timeout=self._timeout_s
        )
        try:
            return {
                (place.topic, place.partition): answer.result(self._timeout_s + 1).offset
                for place, answer in found.items()
            }
        except confluent_kafka.KafkaException as exception:
            topic = next(iter(wanted)).topic
            raise explained(error_of(exception), f"the ends of {topic} are unknown") from None
        except FutureTimeoutError:
            raise ClientTimeoutError(
                f"the ends of partitions are unknown after {self._timeout_s:g} s"
            ) from None
