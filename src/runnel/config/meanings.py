"""One line on each setting that does something here, for the documentation and for DescribeConfigs.

Apart from the registry, because a broker that starts does not need it: imported late.
"""

from typing import Final

from runnel.config.definition import Definition
from runnel.config.support import AWAITED, SYNONYMS

MEANINGS: Final[dict[str, str]] = {
    # Topics
    "cleanup.policy": "What becomes of old records: `delete` drops whole segments by age and size;"
    " `compact` keeps the last value of each key.",
    "compression.gzip.level": "Level for `compression.type=gzip`; -1 is the library's own.",
    "compression.lz4.level": "Level for `compression.type=lz4`.",
    "compression.type": "Codec of the stored batches; `producer` keeps what the producer chose.",
    "compression.zstd.level": "Level for `compression.type=zstd`.",
    "delete.retention.ms": "How long tombstones are kept.",
    "file.delete.delay.ms": "How long the files of a deleted segment or topic stay on the disk.",
    "flush.messages": "fsync after so many records; 1 means before each acknowledgement.",
    "flush.ms": "fsync at the latest so long after an append.",
    "follower.replication.throttled.replicas": "Replicas whose copying in is throttled.",
    "index.interval.bytes": "Bytes of log between two entries of the offset index.",
    "leader.replication.throttled.replicas": "Replicas whose copying out is throttled.",
    "max.compaction.lag.ms": "Longest time that a record may stay uncompacted.",
    "max.message.bytes": "Largest batch that is accepted, as it comes over the wire.",
    "message.timestamp.after.max.ms": "How far ahead of the broker's clock a timestamp may be.",
    "message.timestamp.before.max.ms": "How far behind the broker's clock a timestamp may be.",
    "message.timestamp.type": "Whether records keep the producer's time or get the broker's.",
    "min.cleanable.dirty.ratio": "Share of a log that must be uncompacted before it is compacted.",
    "min.compaction.lag.ms": "Shortest time that a record stays uncompacted.",
    "min.insync.replicas": "Replicas that must have a record before acks=all is answered.",
    "preallocate": "Reserve a segment's whole size on the disk when it is made.",
    "retention.bytes": "Oldest segments of a partition go while it is larger than this; -1: never.",
    "retention.ms": "Segments whose newest record is older than this go; -1: never.",
    "segment.bytes": "Size at which a new segment is begun.",
    "segment.index.bytes": "Largest size of an index file; a full one begins a new segment.",
    "segment.jitter.ms": "Random part taken off `segment.ms`, so that segments do not end at once.",
    "segment.ms": "Age at which a new segment is begun.",
    "unclean.leader.election.enable": "Whether a lagging replica may become leader and lose data.",
    "runnel.durability": "When a write is safe: `interval` fsyncs every flush interval, `ack`"
    " before each acknowledgement, `os` leaves it to the kernel, as Kafka does.",
    "runnel.validation": "How deep a produced batch is checked: its `header` and CRC, or all"
    " `records` inside.",
    "runnel.storage": "Where a topic lives, decided when it is made: on `disk`, or in `memory` and"
    " gone at a restart.",
    # Brokers
    "advertised.listeners": "The addresses that clients are told; default: the listeners.",
    "auto.create.topics.enable": "Whether a topic is made when a client first asks for it.",
    "broker.id": "Kafka's older name of `node.id`.",
    "broker.rack": "Where the broker stands; told to clients.",
    "connections.max.idle.ms": "A connection without a request for so long is closed.",
    "controller.listener.names": "Listeners of this name are left out: there is no separate"
    " controller here.",
    "controller.quota.window.num": "Windows over which controller mutations are averaged.",
    "controller.quota.window.size.seconds": "Length of each of those windows.",
    "default.replication.factor": "Replicas of a topic that does not say.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "Most bytes in the answer to a fetch.",
    # Groups
    "consumer.assignment.interval.ms": "Shortest time between two assignments of this group.",
    "consumer.heartbeat.interval.ms": "How often its members are to send heartbeats.",
    "consumer.session.timeout.ms": "A member of it that is silent for so long is gone.",
    "group.consumer.assignment.interval.ms": "Shortest time between two assignments of a group.",
    "group.consumer.assignors": "How partitions are assigned; the first is the default.",
    "group.consumer.heartbeat.interval.ms": "How often members are to send heartbeats.",
    "group.consumer.max.assignment.interval.ms": "Most that a group may set for itself.",
    "group.consumer.max.heartbeat.interval.ms": "Most that a group may set for itself.",
    "group.consumer.max.session.timeout.ms": "Most that a group may set for itself.",
    "group.consumer.max.size": "Most members of a consumer group.",
    "group.consumer.migration.policy": "Whether a live group may change its protocol: `upgrade` to"
    " the new one, `downgrade`, `bidirectional`, `disabled`.",
    "group.consumer.min.assignment.interval.ms": "Least that a group may set for itself.",
    "group.consumer.min.heartbeat.interval.ms": "Least that a group may set for itself.",
    "group.consumer.min.session.timeout.ms": "Least that a group may set for itself.",
    "group.consumer.session.timeout.ms": "A member that is silent for so long is gone.",
    "group.initial.rebalance.delay.ms": "How long an empty group waits for more members to join.",
    "group.max.session.timeout.ms": "Longest session of a member of a classic group.",
    "group.max.size": "Most members of a classic group.",
    "group.min.session.timeout.ms": "Shortest session of a member of a classic group.",
    "listener.security.protocol.map": "Protocol of each listener's name.",
    "listeners": "Where to listen, as NAME://host:port; port 0 picks a free one.",
    "cordoned.log.dirs": "Those of `log.dirs` that get no new partitions; one must be left.",
    "log.cleaner.backoff.ms": "How long the cleaner rests when no log is due.",
    "log.cleaner.dedupe.buffer.size": "Memory for the keys of the logs that are being compacted.",
    "log.cleaner.enable": "Whether compaction happens at all.",
    "log.cleaner.io.buffer.load.factor": "How full the table of keys may get.",
    "log.cleaner.io.buffer.size": "How much is read and written at a time when compacting.",
    "log.cleaner.io.max.bytes.per.second": "Pace of compaction, what it reads and writes together.",
    "log.cleaner.threads": "Logs that are compacted at a time, each in a process of its own.",
    "log.dir": "Where the data is kept, if `log.dirs` is not set.",
    "log.dirs": "Folders for the data; new partitions go where the fewest are.",
    "log.flush.offset.checkpoint.interval.ms": "How often recovery points are written.",
    "log.flush.start.offset.checkpoint.interval.ms": "How often log start offsets are written.",
    "log.retention.check.interval.ms": "How often retention is applied.",
    "max.connection.creation.rate": "New connections per second; more have to wait.",
    "max.connections": "Connections at a time; more are refused.",
    "max.connections.per.ip": "Connections from one address at a time; more are refused.",
    "max.connections.per.ip.overrides": "Exceptions to that, as host:count,...",
    "max.incremental.fetch.session.cache.slots": "Fetch sessions at a time.",
    "max.request.partition.size.limit": "Most partitions in an answer to DescribeTopicPartitions.",
    "node.id": "Number of this broker; a data folder remembers its broker's.",
    "num.partitions": "Partitions of a topic that does not say.",
    "offset.metadata.max.bytes": "Longest note that a client may leave with an offset.",
    "offsets.commit.timeout.ms": "How long a commit waits until it is safe; then it failed.",
    "offsets.retention.check.interval.ms": "How often offsets are looked for that nobody needs.",
    "offsets.retention.minutes": "How long offsets are kept after their group became empty, or"
    " after the last commit if nobody subscribes to the topic.",
    "offsets.topic.num.partitions": "Partitions of `__consumer_offsets` when it is created.",
    "offsets.topic.replication.factor": "Replicas of `__consumer_offsets` when it is created; fewer"
    " if there are fewer brokers.",
    "offsets.topic.segment.bytes": "Size of a segment of `__consumer_offsets` when it is created.",
    "producer.id.expiration.ms": "A producer is forgotten so long after its last record.",
    "queued.max.request.bytes": "Memory for requests that are being received; -1: the budget's.",
    "quota.window.num": "Windows over which client quotas are averaged.",
    "quota.window.size.seconds": "Length of each of those windows.",
    "replica.alter.log.dirs.io.max.bytes.per.second": "Pace at which a log moves between folders.",
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are written.",
    "socket.listen.backlog.size": "Connections that may wait to be accepted.",
    "socket.receive.buffer.bytes": "Size of the kernel's receive buffer; -1: the kernel's choice.",
    "socket.request.max.bytes": "Largest request; a larger one closes its connection.",
    "socket.send.buffer.bytes": "Size of the kernel's send buffer; -1: the kernel's choice.",
    "add.partitions.to.txn.retry.backoff.max.ms": "How long a transaction's first record waits for"
    " the end of the transaction before, at most.",
    "add.partitions.to.txn.retry.backoff.ms": "How often it looks for that end meanwhile.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "How often transactions are"
    " looked for that are open for too long, to abort them.",
    "transaction.max.timeout.ms": "Longest time-out that a transactional producer may ask for.",
    "transaction.partition.verification.enable": "Whether a transactional record is accepted only"
    " if its transaction knows of the partition.",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "How often transactional ids are"
    " looked for that nobody has used for long.",
    "transaction.state.log.min.isr": "`min.insync.replicas` of `__transaction_state` when it is"
    " made; no more than it has replicas.",
    "transaction.state.log.num.partitions": "Partitions of `__transaction_state` when it is made.",
    "transaction.state.log.replication.factor": "Replicas of `__transaction_state` when it is made;"
    " no more than there are brokers.",
    "transaction.state.log.segment.bytes": "`segment.bytes` of `__transaction_state` when it is"
    " made.",
    "transactional.id.expiration.ms": "How long a transactional id is remembered that nobody uses.",
    "runnel.busy.poll.awake": "Whether a machine's processors, if they are eight at most, are kept"
    " awake meanwhile; only where the broker may ask for that (Linux, as root).",
    "runnel.busy.poll.us": "How long the loop looks for the next small request, before it sleeps,"
    " while one client or two send one at a time; 0: not at all.",
    "runnel.decompressed.max.bytes": "Most bytes that a compressed batch may grow to when it is"
    " looked into.",
    "runnel.flush.interval.ms": "Time between two fsyncs with `runnel.durability=interval`.",
    "runnel.frame.timeout.ms": "A request that was begun must go on arriving within this time.",
    "runnel.http.listener": "Where `/metrics`, `/healthz` and `/readyz` are served, as host:port;"
    " `off`: nowhere. A default that is taken, or port 0 in `listeners`, means any free port.",
    "runnel.log.file": "File for the broker's own log, besides the stream.",
    "runnel.log.file.max.bytes": "Size at which that file is put aside and a new one begun.",
    "runnel.log.file.retention.days": "Files that were put aside are deleted after so many days.",
    "runnel.log.format": "Lines for people, or one JSON object a line with the context in fields.",
    "runnel.log.level": "The least that is logged.",
    "runnel.log.stream": "Where it goes: stdout is what collectors of container logs expect.",
    "runnel.max.in.flight.requests": "Produce requests of one connection that are handled before"
    " the first is answered.",
    "runnel.max.open.files": "Log files that are kept open.",
    "runnel.memory.budget.bytes": "Memory for requests and answers; at the limit reading stops.",
    "runnel.metadata.lease.ms": "A broker that is silent for so long counts as gone.",
    "runnel.send.timeout.ms": "A client that takes nothing of its answers for so long is let go.",
    "runnel.shutdown.timeout.ms": "How long a stop waits for requests under way.",
}

_DEFAULT_OF = {broker: topic for topic, pairs in SYNONYMS.items() for broker, _ in pairs}


def meaning(definition: Definition) -> str:
    """Empty for a name that has no effect here."""
    name, text = definition.name, MEANINGS.get(definition.name, "")
    if definition.scope == "topic":
        return f"{text} Kept; takes effect with {AWAITED[name]}." if name in AWAITED else text
    if definition.scope != "broker":
        return text if definition.status == "honoured" else ""
    topic_name = _DEFAULT_OF.get(name, name)
    return text if topic_name == name else f"What topics get that do not set `{topic_name}`."
