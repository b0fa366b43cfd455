"""WriteTxnMarkers (key 27, v1-v2): how transactions ended, into the partitions of this broker.

Coordinators of other brokers send it, and operators who end a transaction that hangs: one that no
coordinator knows of, or whose coordinator gave up. Version notes: v2 says under which
transaction.version a transaction ended, because since 2 its marker has an epoch of its own.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.partition import Partition
from runnel.broker.waiting import Parked
from runnel.coordinator.transactions.transitions import EPOCH_BUMPS_SINCE
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.transactions import Marker
from runnel.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TIMEOUT_MS: Final = 30_000  # Kafka's request.timeout.ms
Wait = tuple[Partition, int, WritableTxnMarkerPartitionResult]


def write_txn_markers(
    context: RequestContext, services: Services, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Parked[WriteTxnMarkersResponse]:
    waits: list[Wait] = []
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            _write(services, marker, topic.name, index, waits)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
    if all(partition.high_watermark >= end for partition, end, _ in waits):
        return response

    def attempt(final: bool) -> WriteTxnMarkersResponse | None:
        late = [wait for wait in waits if wait[0].high_watermark < wait[1]]
        if not final and any(partition.is_leader for partition, _, _ in late):
            return None
        for partition, _, result in late:
            result.error_code = (
                ErrorCode.REQUEST_TIMED_OUT
                if partition.is_leader
                else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        return response

    return Parked([partition for partition, _, _ in waits], TIMEOUT_MS, attempt)


def _write(
    services: Services, marker: WritableTxnMarker, topic: str, index: int, waits: list[Wait]
) -> WritableTxnMarkerPartitionResult:
    result = WritableTxnMarkerPartitionResult(partition_index=index)
    try:
        partition = services.partitions.get(topic, index)
        services.markers().append(
            partition,
            marker.producer_id,
            marker.producer_epoch,
            Marker(marker.transaction_result, marker.coordinator_epoch),
            bumped_epoch=marker.transaction_version >= EPOCH_BUMPS_SINCE,
        )
        waits.append((partition, partition.log.log_end_offset, result))
    except RunnelError as error:
        result.error_code = error.code
    return result
