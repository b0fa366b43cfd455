"""Names that people know from other systems, and the setting that each one means.

A spelling is looked up as it stands, then with `_` and `-` read as dots, then without the section
that a nested file put before it (`server: {max_connections: 5}`), then under `runnel.`. Addresses
are in parts (HOST, PORT, ADDRESS, ADVERTISED) until `sources` has seen every source; then they are
`listeners` and `advertised.listeners`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from runnel.config.definition import ConfigError
from runnel.config.registry import BROKER

HOST: Final = "(host)"
PORT: Final = "(port)"
ADDRESS: Final = "(address)"
ADVERTISED: Final = "(advertised host)"
SECTIONS: Final = ("broker", "log", "logging", "network", "server", "storage")

_STORAGES = {"in_memory": "memory", "in-memory": "memory", "memory": "memory"}
_STORAGES |= {"disk": "disk", "file": "disk", "persistent": "disk"}


def _storage(text: str) -> str:
    return _STORAGES.get(text.strip().lower(), text)


def _milliseconds(text: str) -> str:
    """Whole seconds as milliseconds; what is no number is left for the setting to refuse."""
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise ConfigError(f"{text[:100]!r} is not a number of seconds")
    return "-1" if stripped.startswith("-") else str(int(stripped) * 1000)


def _level(text: str) -> str:
    return {"warn": "warning", "trace": "debug", "critical": "error", "fatal": "error"}.get(
        text.strip().lower(), text
    )


class Meant(NamedTuple):
    """The setting that a spelling stands for, and how its value is turned into the setting's."""

    name: str
    convert: Callable[[str], str] = str


# A key with a dot counts only inside that section.
FAMILIAR: dict[str, Meant] = {
    "address": Meant(ADDRESS),
    "advertised_host": Meant(ADVERTISED),
    "advertised_host_name": Meant(ADVERTISED),
    "auto_create_topics": Meant("auto.create.topics.enable"),
    "bind_address": Meant(HOST),
    "data_dir": Meant("log.dirs"),
    "default_partitions": Meant("num.partitions"),
    "host": Meant(HOST),
    "http": Meant("runnel.http.listener"),
    "idle_timeout_ms": Meant("connections.max.idle.ms"),
    "kafka_port": Meant(PORT),
    "log_file": Meant("runnel.log.file"),
    "log_format": Meant("runnel.log.format"),
    "log_level": Meant("runnel.log.level", _level),
    "max_message_bytes": Meant("message.max.bytes"),
    "max_message_size": Meant("message.max.bytes"),
    "max_request_size": Meant("socket.request.max.bytes"),
    "partitions": Meant("num.partitions"),
    "port": Meant(PORT),
    "replication_factor": Meant("default.replication.factor"),
    "request_timeout_ms": Meant("runnel.frame.timeout.ms"),
    "retention_bytes": Meant("log.retention.bytes"),
    "retention_hours": Meant("log.retention.hours"),
    "retention_ms": Meant("log.retention.ms"),
    "retention_seconds": Meant("log.retention.ms", _milliseconds),
    "segment_bytes": Meant("log.segment.bytes"),
    "segment_size": Meant("log.segment.bytes"),
    "log.file": Meant("runnel.log.file"),
    "log.format": Meant("runnel.log.format"),
    "log.level": Meant("runnel.log.level", _level),
    "logging.file": Meant("runnel.log.file"),
    "logging.format": Meant("runnel.log.format"),
    "logging.level": Meant("runnel.log.level", _level),
    "logging.max_bytes": Meant("runnel.log.file.max.bytes"),
    "logging.retention_days": Meant("runnel.log.file.retention.days"),
    "server.id": Meant("node.id"),
    "storage.dir": Meant("log.dirs"),
    "storage.path": Meant("log.dirs"),
    "storage.type": Meant("runnel.storage", _storage),
}

# Variables without our prefix, from the worlds of containers and of other brokers.
VARIABLES: dict[str, Meant] = {
    "AUTO_CREATE_TOPICS": FAMILIAR["auto_create_topics"],
    "DATA_DIR": FAMILIAR["data_dir"],
    "HOST": FAMILIAR["host"],
    "KAFKA_PORT": FAMILIAR["kafka_port"],
    "NODE_ID": Meant("node.id"),
}


def meant_by(spelling: str) -> Meant | None:
    """None for a name that nobody knows."""
    if spelling in BROKER:
        return Meant(spelling)
    plain = spelling.replace("-", "_")
    section, dot, inner = plain.partition(".")
    inside = [inner] if dot and section in SECTIONS else []
    for candidate in (plain, *inside):
        if candidate in FAMILIAR:
            return FAMILIAR[candidate]
        dotted = candidate.replace("_", ".")
        if "_" in candidate and dotted in BROKER:
            return Meant(dotted)
        if candidate is not plain and candidate in BROKER:
            return Meant(candidate)
        if f"runnel.{dotted}" in BROKER:
            return Meant(f"runnel.{dotted}")
    return None
