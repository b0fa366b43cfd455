"""What a broker's settings say about groups and transactions: Kafka's names and defaults."""

from dataclasses import dataclass
from typing import Final

ASSIGNORS: Final = ("uniform", "range")  # what a broker can assign partitions by


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 104_857_600
    offset_metadata_max_bytes: int = 4096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ASSIGNORS
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_min_isr: int = 2
    transaction_state_log_segment_bytes: int = 104_857_600
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_partition_verification_enable: bool = True
    add_partitions_to_txn_retry_backoff_ms: int = 20
    add_partitions_to_txn_retry_backoff_max_ms: int = 100
