"""The names of Runnel's own: what Kafka has no setting for, always under `runnel.`"""

from runnel.config.definition import Definition

_DURABILITIES = ("interval", "ack", "os")
_VALIDATIONS = ("header", "records")
LOG_LEVELS = ("debug", "info", "warning", "error")

_BROKER = (
    # When a write is safe: fsync every flush interval, before each ack, or left to the kernel.
    Definition(
        "broker",
        "runnel.durability",
        "string",
        "interval",
        choices=_DURABILITIES,
        update="cluster-wide",
    ),
    # How deep a produced batch is checked: its header and CRC, or every record inside.
    Definition(
        "broker",
        "runnel.validation",
        "string",
        "header",
        choices=_VALIDATIONS,
        update="cluster-wide",
    ),
    # Where new topics live. Not dynamic: moving a log from disk to memory would be a copy.
    Definition("broker", "runnel.storage", "string", "disk", choices=("disk", "memory")),
    # How long to look for the next request where one client or two send one at a time (ADR 13).
    Definition("broker", "runnel.busy.poll.us", "int", "500", minimum=0, maximum=10_000),
    Definition("broker", "runnel.busy.poll.awake", "boolean", "true"),  # ADR 57
    Definition("broker", "runnel.flush.interval.ms", "long", "1000", minimum=1),
    Definition("broker", "runnel.decompressed.max.bytes", "int", "67108864", minimum=1),
    # The ledger of receive, parked, send and decompression memory; at the limit reading stops.
    Definition("broker", "runnel.memory.budget.bytes", "long", "536870912", minimum=1 << 20),
    Definition("broker", "runnel.max.in.flight.requests", "int", "5", minimum=1, maximum=1000),
    Definition("broker", "runnel.frame.timeout.ms", "int", "30000", minimum=1),
    Definition("broker", "runnel.send.timeout.ms", "int", "120000", minimum=1),
    Definition("broker", "runnel.shutdown.timeout.ms", "int", "10000", minimum=0),
    Definition("broker", "runnel.max.open.files", "int", "1024", minimum=16),
    Definition("broker", "runnel.metadata.lease.ms", "int", "6000", minimum=1000),
    # Where metrics and health are told over HTTP; `off`: nowhere.
    Definition("broker", "runnel.http.listener", "string", "127.0.0.1:9644"),
    # The broker's own log.
    Definition("broker", "runnel.log.level", "string", "info", choices=LOG_LEVELS, any_case=True),
    Definition("broker", "runnel.log.format", "string", "text", choices=("text", "json")),
    Definition("broker", "runnel.log.stream", "string", "stderr", choices=("stderr", "stdout")),
    Definition("broker", "runnel.log.file", "string", None, not_empty=True),
    Definition("broker", "runnel.log.file.max.bytes", "long", "104857600", minimum=65536),
    Definition("broker", "runnel.log.file.retention.days", "int", "7", minimum=1, maximum=36500),
)

_TOPIC = (
    Definition(
        "topic",
        "runnel.durability",
        "string",
        "interval",
        choices=_DURABILITIES,
        update="cluster-wide",
    ),
    Definition(
        "topic",
        "runnel.validation",
        "string",
        "header",
        choices=_VALIDATIONS,
        update="cluster-wide",
    ),
    Definition("topic", "runnel.storage", "string", "disk", choices=("disk", "memory")),
)

RUNNEL_NAMES: tuple[Definition, ...] = tuple(
    definition._replace(status="honoured") for definition in _BROKER + _TOPIC
)
