"""Bad records put aside: sent to another topic as they were, with headers that say why.

The headers are those of the client library's dead letters (`dlq.topic`, `dlq.reason`, ...), so that
`runnel.client.replay` sends them back. A batch of rows is given to Spark only after its dead
letters are acknowledged; a task that Spark repeats sends them again.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow import connections
from runnel.arrow.losses import ReadError
from runnel.arrow.ranges import Scan
from runnel.client.cluster import ClientError
from runnel.client.sending import Sender
from runnel.native.columns import Record

if TYPE_CHECKING:
    import pyarrow as pa

REASON_BYTES_MAX: Final = 1000
REPLAYS: Final = "dlq.replays"


def put_aside(
    scan: Scan, topic: str, partition: int, arrays: "Mapping[str, pa.Array]", bad: Mapping[int, str]
) -> None:
    """Those rows of the columns key, value, headers, offset. Raises ReadError."""
    assert scan.decode is not None and scan.decode.dead_letter_topic is not None
    target = scan.decode.dead_letter_topic
    now_ms = int(time.time() * 1000)
    cluster = connections.take(scan.client, scan.poll_timeout_ms)
    try:
        # A connection of an earlier task may have been closed since, by a broker that saw it idle.
        sender = cluster.retried(lambda: Sender(cluster, target), reconnect=True)
        for row, why in bad.items():
            said = {
                "dlq.topic": topic,
                "dlq.partition": str(partition),
                "dlq.offset": str(arrays["offset"][row].as_py()),
                "dlq.timestamp": str(now_ms),
                "dlq.tries": "1",
                "dlq.error": "BadRecordError",
                "dlq.reason": why[:REASON_BYTES_MAX],
            }
            headers = _headers(arrays["headers"][row].as_py() or (), said)
            key, value = arrays["key"][row].as_py(), arrays["value"][row].as_py()
            sender.add(Record(key, value, now_ms, headers))
        sender.flush()
    except ClientError as error:
        cluster.close()
        raise ReadError(
            f"{len(bad)} bad records of {topic}-{partition} cannot be sent to {target}: {error};"
            " create that topic, or set badRecords=null"
        ) from None
    connections.give_back(scan.client, cluster)


def _headers(
    own: Sequence[Mapping[str, Any]], said: Mapping[str, str]
) -> list[tuple[str, bytes | None]]:
    """The record's own, then what is said of it; how often it was sent back is counted on."""
    kept = [(each["key"], each["value"]) for each in own if each["key"] not in said]
    if not any(name == REPLAYS for name, _ in kept):
        kept.append((REPLAYS, b"0"))
    return [*kept, *((name, text.encode()) for name, text in said.items())]
