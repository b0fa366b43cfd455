"""WriteTxnMarkers (key 27), versions 1-2, flexible from 1.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class WritableTxnMarkerTopic:
    name: str = wire(STRING, default="")
    partition_indexes: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class WritableTxnMarker:
    producer_id: int = wire(INT64, default=0)
    producer_epoch: int = wire(INT16, default=0)
    transaction_result: bool = wire(BOOL, default=False)
    topics: list[WritableTxnMarkerTopic] = wire(
        array_of(WritableTxnMarkerTopic), default_factory=list
    )
    coordinator_epoch: int = wire(INT32, default=0)
    transaction_version: int = wire(INT8, default=0, since=2, ignorable=True)


@message(api_key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = wire(array_of(WritableTxnMarker), default_factory=list)


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class WritableTxnMarkerTopicResult:
    name: str = wire(STRING, default="")
    partitions: list[WritableTxnMarkerPartitionResult] = wire(
        array_of(WritableTxnMarkerPartitionResult), default_factory=list
    )


@struct
class WritableTxnMarkerResult:
    producer_id: int = wire(INT64, default=0)
    topics: list[WritableTxnMarkerTopicResult] = wire(
        array_of(WritableTxnMarkerTopicResult), default_factory=list
    )


@message(api_key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = wire(
        array_of(WritableTxnMarkerResult), default_factory=list
    )
