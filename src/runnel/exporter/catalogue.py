"""Every metric that a broker tells: its name, its kind, what it means, and where it comes from.

The one list of names. The exporter prints what is here and nothing else; `runnel metrics`, `runnel
top`, the dashboard and the alert rules name what is here. Seconds and bytes, as Prometheus has it;
a counter starts at 0 with its broker.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from runnel.exporter.layout import Slot

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"


class Metric(NamedTuple):
    """A counter's name ends in `_total`; a histogram's samples end in `_bucket`, `_sum`, `_count`.

    With a `slot` its one sample is that number times `scale`; without, `text.py` knows how to get
    its samples.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    slot: Slot | None = None
    scale: float = 1


_PARTITION = ("topic", "partition")
_OFFSET = ("group", "topic", "partition")


def _counter(name: str, slot: Slot, help_: str) -> Metric:
    return Metric(name, COUNTER, help_, slot=slot)


def _gauge(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name, GAUGE, help_, labels)


METRICS: Final[tuple[Metric, ...]] = (
    # The broker
    _gauge("runnel_build_info", "1; what runs here", "version", "python", "broker", "cluster"),
    _gauge("runnel_ready", "1 while clients may come, 0 while it starts or stops"),
    _gauge("runnel_start_time_seconds", "When the broker was started, since 1970"),
    Metric(
        "runnel_loop_lag_seconds",
        HISTOGRAM,
        "How late the event loop ran what was due: above some ms everybody waits",
    ),
    # Connections
    _gauge("runnel_connections", "Connections of clients that are open"),
    _counter(
        "runnel_connections_accepted_total", Slot.CONNECTIONS_ACCEPTED, "Connections accepted"
    ),
    _counter(
        "runnel_connections_refused_total",
        Slot.CONNECTIONS_REFUSED,
        "Connections refused because max.connections or max.connections.per.ip are open",
    ),
    _counter(
        "runnel_connections_throttled_total",
        Slot.CONNECTIONS_THROTTLED,
        "Connections turned away by a connection_creation_rate quota",
    ),
    # Requests
    Metric("runnel_requests_total", COUNTER, "Requests answered, by API", ("api",)),
    Metric(
        "runnel_request_seconds",
        HISTOGRAM,
        "From the last byte of a request to its answer, waiting for data or a flush included",
        ("api",),
    ),
    Metric(
        "runnel_request_errors_total",
        COUNTER,
        "Errors in answers, by Kafka's name; one request may have one per partition",
        ("error",),
    ),
    _counter(
        "runnel_requests_malformed_total",
        Slot.REQUESTS_MALFORMED,
        "Requests that no client sends; each cost its connection",
    ),
    _counter(
        "runnel_requests_failed_total",
        Slot.REQUESTS_FAILED,
        "Requests that met a bug of the broker; the log has a traceback of each",
    ),
    _counter(
        "runnel_requests_throttled_total",
        Slot.REQUESTS_THROTTLED,
        "Requests whose answer told the client to slow down",
    ),
    Metric(
        "runnel_requests_parked",
        GAUGE,
        "Requests that wait: fetches for data, produces for a flush",
        slot=Slot.REQUESTS_PARKED_NOW,
    ),
    # Data
    _counter("runnel_produced_records_total", Slot.PRODUCED_RECORDS, "Records appended by clients"),
    _counter("runnel_produced_batches_total", Slot.PRODUCED_BATCHES, "Batches appended by clients"),
    _counter("runnel_produced_bytes_total", Slot.PRODUCED_BYTES, "Bytes of those batches"),
    _counter("runnel_fetched_bytes_total", Slot.FETCHED_BYTES, "Bytes of records in answers"),
    _counter("runnel_fetches_parked_total", Slot.FETCHES_PARKED, "Fetches that had to wait"),
    _counter(
        "runnel_cold_reads_total", Slot.SLICES_WARMED, "Reads that came from the disk, not memory"
    ),
    _counter("runnel_flushes_total", Slot.FLUSHES, "Logs flushed to the disk"),
    _counter("runnel_flushes_failed_total", Slot.FLUSHES_FAILED, "Of them those that failed"),
    Metric("runnel_flush_seconds", HISTOGRAM, "How long a round of flushes took"),
    # Storage
    _gauge("runnel_topics", "Topics with a partition here"),
    _gauge("runnel_partitions", "Partitions here"),
    _gauge("runnel_partitions_led", "Partitions that this broker leads"),
    _gauge("runnel_logs_offline", "Logs whose disk failed; the broker's log says why"),
    _gauge("runnel_topic_partitions", "Partitions of a topic that are here", "topic"),
    _gauge("runnel_topic_bytes", "Bytes of a topic's records here", "topic"),
    _gauge("runnel_partition_log_start_offset", "First offset that can be read", *_PARTITION),
    _gauge("runnel_partition_log_end_offset", "Offset of the next record", *_PARTITION),
    _gauge("runnel_partition_high_watermark", "Up to where consumers read", *_PARTITION),
    _gauge(
        "runnel_partition_last_stable_offset",
        "Up to where consumers of committed data read; an open transaction holds it back",
        *_PARTITION,
    ),
    _gauge("runnel_partition_bytes", "Bytes of a partition's records", *_PARTITION),
    _gauge("runnel_partition_segments", "Files of a partition's records", *_PARTITION),
    _gauge(
        "runnel_partition_oldest_record_timestamp_seconds",
        "Time of the oldest batch; time() minus this is its age",
        *_PARTITION,
    ),
    _gauge("runnel_log_dir_bytes", "Of a data folder's disk: total, free, used", "dir", "kind"),
    _gauge("runnel_log_dir_partitions", "Partitions in a data folder", "dir"),
    _gauge("runnel_log_dir_online", "0 if the data folder cannot be used", "dir"),
    _counter(
        "runnel_retention_deleted_segments_total",
        Slot.RETENTION_DELETED_SEGMENTS,
        "Segments that retention deleted",
    ),
    _counter(
        "runnel_retention_deleted_bytes_total",
        Slot.RETENTION_DELETED_BYTES,
        "Bytes that retention deleted",
    ),
    _counter("runnel_cleaner_runs_total", Slot.CLEANER_RUNS, "Logs compacted"),
    _counter("runnel_cleaner_read_bytes_total", Slot.CLEANER_READ_BYTES, "Bytes read for that"),
    _counter(
        "runnel_cleaner_written_bytes_total", Slot.CLEANER_WRITTEN_BYTES, "Bytes left of those"
    ),
    Metric(
        "runnel_cleaner_dirty_ratio_max",
        GAUGE,
        "Of the log that needs compaction most: which part of it was never compacted",
        slot=Slot.CLEANER_DIRTY_PERCENT_MAX,
        scale=0.01,
    ),
    Metric(
        "runnel_cleaner_uncleanable_logs",
        GAUGE,
        "Logs that compaction gave up; the broker's log says why",
        slot=Slot.CLEANER_UNCLEANABLE,
    ),
    # Groups and transactions
    _gauge("runnel_groups", "Consumer groups, by protocol and state", "protocol", "state"),
    _gauge("runnel_group_members", "Members of a group", "group"),
    Metric(
        "runnel_group_rebalances_total",
        COUNTER,
        "Generations of a classic group, epochs of a new one: each is a rebalance",
        ("group",),
    ),
    _gauge("runnel_group_committed_offset", "Next offset that a group will read", *_OFFSET),
    _gauge("runnel_group_lag", "Records between a group's offset and the high watermark", *_OFFSET),
    _gauge("runnel_transactions", "Transactional ids, by the state of their last one", "state"),
    _gauge("runnel_transaction_oldest_seconds", "Age of the transaction that is open longest"),
    # What is told here, and by whom
    _gauge(
        "runnel_metrics_left_out", "Partitions, groups, offsets for which there is no row", "kind"
    ),
    _gauge("runnel_exporter_resident_memory_bytes", "Memory of the process that tells all this"),
    Metric("runnel_exporter_cpu_seconds_total", COUNTER, "CPU time of that process"),
    # Prometheus's own names of a process: the broker
    Metric("process_cpu_seconds_total", COUNTER, "CPU time of the broker"),
    _gauge("process_resident_memory_bytes", "Memory of the broker"),
    _gauge("process_open_fds", "Files and connections that the broker holds open"),
    _gauge("process_max_fds", "How many it may hold open"),
    _gauge("process_start_time_seconds", "When the process was started, since 1970"),
)
BY_NAME: Final = {metric.name: metric for metric in METRICS}


def sample_names(metric: Metric) -> Iterator[str]:
    """As a query spells them."""
    if metric.kind == HISTOGRAM:
        for ending in ("_bucket", "_sum", "_count"):
            yield metric.name + ending
    else:
        yield metric.name
