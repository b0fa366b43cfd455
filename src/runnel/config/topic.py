"""The configuration of one log, as storage reads it: typed, complete and already validated.

The field names are Kafka's topic-level names with underscores; the defaults are Kafka 4.3's.
A value of -1 for a retention, and the largest int64 for a flush or age limit, means "never".
"""

from dataclasses import dataclass
from typing import Literal

NEVER = 2**63 - 1

Durability = Literal["interval", "ack", "os"]
Storage = Literal["disk", "memory"]
Validation = Literal["header", "records"]
TimestampType = Literal["CreateTime", "LogAppendTime"]
CompressionType = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4096
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    max_message_bytes: int = 1_048_588
    timestamp_type: TimestampType = "CreateTime"
    timestamp_before_max_ms: int = NEVER
    timestamp_after_max_ms: int = 3_600_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: CompressionType = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_insync_replicas: int = 1
    file_delete_delay_ms: int = 60_000
    preallocate: bool = False
    durability: Durability = "interval"
    storage: Storage = "disk"
    validation: Validation = "header"
    producer_id_expiration_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    delete_retention_ms: int = 86_400_000

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The active segment is never compacted, so it must not be active for too long either."""
        if self.is_compacted:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms
