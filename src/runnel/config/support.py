"""Runnel's side of the table: which of Kafka's names it honours or refuses, and its defaults.

A Kafka name that is neither honoured nor refused is accepted, kept and shown, has no effect, and
gives one warning at start. A refused name stops the start: it asks for a JVM class or a guarantee
that would silently be missing. Both lists shrink as features arrive.
"""

from runnel.config.cleaning import NAMES as CLEANER_NAMES
from runnel.config.definition import Definition

# Broker names that Kafka has only as dynamic ones, so that none of its tables holds them.
DYNAMIC_ONLY_NAMES: tuple[Definition, ...] = tuple(
    Definition("broker", name, "long", str(2**63 - 1), minimum=0, update="cluster-wide")
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)

# Where Runnel's default differs from Kafka's, and why.
REASONED_DEFAULTS: dict[str, tuple[str, str]] = {
    "listeners": ("PLAINTEXT://127.0.0.1:9092", "not all interfaces: nobody is authenticated"),
    "node.id": ("0", "one broker on a laptop needs no number"),
    "log.dir": ("runnel-data", "Kafka's is in /tmp, which a reboot clears"),
    "max.connections": ("10000", "every count has a limit"),
    "socket.receive.buffer.bytes": ("-1", "the kernel's own tuning is faster"),
    "socket.send.buffer.bytes": ("-1", "the kernel's own tuning is faster"),
    "socket.listen.backlog.size": ("1024", "a storm of reconnects overflows 50 at once"),
}
DEFAULTS: dict[str, str] = {name: value for name, (value, _) in REASONED_DEFAULTS.items()}

# Topic-level name -> the broker-level names that give its default, the first one set wins.
# The number turns the broker's unit into the topic's.
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "runnel.durability": (("runnel.durability", 1),),
    "runnel.validation": (("runnel.validation", 1),),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}

# A broker's names for one thing in several units: the first one set wins.
BROKER_SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)

# Kept, shown and alterable, but only what is not there yet will read them: name -> what that is.
AWAITED: dict[str, str] = {
    "follower.replication.throttled.replicas": "replication",
    "leader.replication.throttled.replicas": "replication",
    "unclean.leader.election.enable": "replication",
}

# Topic-level name -> field of LogConfig.
LOG_FIELDS: dict[str, str] = {
    "cleanup.policy": "cleanup_policy",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.type": "compression_type",
    "compression.zstd.level": "compression_zstd_level",
    "delete.retention.ms": "delete_retention_ms",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "index.interval.bytes": "index_interval_bytes",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.type": "timestamp_type",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "preallocate": "preallocate",
    "min.insync.replicas": "min_insync_replicas",
    "retention.bytes": "retention_bytes",
    "retention.ms": "retention_ms",
    "runnel.durability": "durability",
    "runnel.storage": "storage",
    "runnel.validation": "validation",
    "segment.bytes": "segment_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.ms": "segment_ms",
}

TRANSACTION_NAMES: tuple[str, ...] = (
    "add.partitions.to.txn.retry.backoff.max.ms",
    "add.partitions.to.txn.retry.backoff.ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.max.timeout.ms",
    "transaction.partition.verification.enable",
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.segment.bytes",
    "transactional.id.expiration.ms",
)

CONSUMER_GROUP_NAMES: tuple[str, ...] = (
    "group.consumer.assignment.interval.ms",
    "group.consumer.assignors",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.max.size",
    "group.consumer.migration.policy",
    "group.consumer.min.assignment.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "group.consumer.session.timeout.ms",
)
HONOURED_GROUP_NAMES: tuple[str, ...] = (
    "consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
)

HONOURED_BROKER_NAMES = (
    frozenset(
        [
            "advertised.listeners",
            "auto.create.topics.enable",
            "broker.id",
            "broker.rack",
            "connections.max.idle.ms",
            "cordoned.log.dirs",
            "controller.listener.names",
            "controller.quota.window.num",
            "controller.quota.window.size.seconds",
            "default.replication.factor",
            "delete.topic.enable",
            "fetch.max.bytes",
            "group.initial.rebalance.delay.ms",
            "group.max.session.timeout.ms",
            "group.max.size",
            "group.min.session.timeout.ms",
            "listener.security.protocol.map",
            "listeners",
            "log.dir",
            "log.dirs",
            "log.flush.offset.checkpoint.interval.ms",
            "log.flush.start.offset.checkpoint.interval.ms",
            "log.retention.check.interval.ms",
            "max.connection.creation.rate",
            "max.connections",
            "max.connections.per.ip",
            "max.connections.per.ip.overrides",
            "max.incremental.fetch.session.cache.slots",
            "max.request.partition.size.limit",
            "node.id",
            "num.partitions",
            "offset.metadata.max.bytes",
            "offsets.commit.timeout.ms",
            "offsets.retention.check.interval.ms",
            "offsets.retention.minutes",
            "offsets.topic.num.partitions",
            "offsets.topic.replication.factor",
            "offsets.topic.segment.bytes",
            "producer.id.expiration.ms",
            "queued.max.request.bytes",
            "quota.window.num",
            "quota.window.size.seconds",
            "replica.alter.log.dirs.io.max.bytes.per.second",
            "replica.high.watermark.checkpoint.interval.ms",
            "socket.listen.backlog.size",
            "socket.receive.buffer.bytes",
            "socket.request.max.bytes",
            "socket.send.buffer.bytes",
        ]
    )
    | {*CLEANER_NAMES}
    | {*TRANSACTION_NAMES}
    | {*CONSUMER_GROUP_NAMES}
    | {broker for topic in LOG_FIELDS for broker, _ in SYNONYMS.get(topic, ())}
)

# Besides every name of type `class`: these name JVM classes too, or switch on what is not there.
REFUSED_NAMES = frozenset(
    [
        "authorizer.class.name",
        "config.providers",
        "kafka.metrics.reporters",
        "metric.reporters",
        "remote.log.metadata.manager.class.name",
        "remote.log.storage.manager.class.name",
        "remote.log.storage.system.enable",
        "remote.storage.enable",
        "replica.selector.class",
        "security.providers",
    ]
)
