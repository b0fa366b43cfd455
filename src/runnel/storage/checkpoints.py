"""The small text files of a data folder, in Kafka's formats, replaced atomically.

  *-offset-checkpoint        version 0, a count, then `topic partition offset` lines
  leader-epoch-checkpoint    version 0, a count, then `epoch start_offset` lines
  partition.metadata         `version: 0` and `topic_id: ` with the id in URL-safe base64
  meta.properties            `version=1`, `cluster.id`, `node.id`, `directory.id`
  .kafka_cleanshutdown       JSON with `version` 0 and `brokerEpoch`, after a clean stop only
  .runnel_boot               JSON with `version` 0 and `bootId`: the boot of the kernel that ran the
                             last writer, and `failed` once a write or fsync of it failed

A reader that finds a newer version refuses (`RunnelError`), one that finds nonsense raises
`ValueError`: what to do then differs from file to file and is the caller's choice. Only of
`meta.properties` it is known here: nobody may guess whose data it is, so that is refused too.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Disk
from runnel.storage.files import write_all
from runnel.types import TopicId, TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
FIRST_DIRTY = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
BOOT = ".runnel_boot"

VERSION = 0
META_VERSIONS = (0, 1)


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class MetaProperties(NamedTuple):
    cluster_id: str
    node_id: int
    directory_id: TopicId


class CleanShutdown(NamedTuple):
    broker_epoch: int


class Boot(NamedTuple):
    boot_id: str
    failed: bool


def replace_file(
    disk: Disk, folder: str, name: str, data: bytes, *, sync: bool = True, temporary: str = ".tmp"
) -> None:
    """The file then holds all of `data`; after a crash in between, the old or the new."""
    path = f"{folder}/{name}"
    file = disk.open(path + temporary, create=True)
    file.truncate(0)  # a crash may have left a longer one
    write_all(file, 0, data)
    if sync:
        file.sync()
    disk.rename(path + temporary, path)
    if sync:
        disk.sync_dir(folder)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [f"{tp.topic} {tp.index} {offset}\n" for tp, offset in sorted(offsets.items())]
    return f"{VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(data: bytes, path: str) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for line in _checked_lines(data, path):
        topic, index, offset = line.split(" ")
        offsets[TopicPartition(topic, int(index))] = int(offset)
    return offsets


def encode_epochs(entries: Iterable[EpochStart]) -> bytes:
    lines = [f"{entry.epoch} {entry.start_offset}\n" for entry in entries]
    return f"{VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def decode_epochs(data: bytes, path: str) -> list[EpochStart]:
    entries: list[EpochStart] = []
    for line in _checked_lines(data, path):
        epoch, start_offset = line.split(" ")
        entries.append(EpochStart(int(epoch), int(start_offset)))
        if min(entries[-1]) < 0:
            raise ValueError(f"{path} has a negative number")
    return entries


def _checked_lines(data: bytes, path: str) -> list[str]:
    lines = data.decode("utf-8").split("\n")
    if len(lines) < 3 or lines.pop() != "":
        raise ValueError(f"{path} is cut off")
    _refuse_newer(int(lines[0]), path)
    if int(lines[1]) != len(lines) - 2:
        raise ValueError(f"{path} announces {lines[1]} lines and has {len(lines) - 2}")
    return lines[2:]


def _refuse_newer(version: int, path: str) -> None:
    if version > VERSION:
        raise RunnelError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} has version {version}; this release reads {VERSION}",
        )


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: {VERSION}\ntopic_id: {encode_id(topic_id)}\n".encode()


def decode_partition_metadata(data: bytes, path: str) -> TopicId:
    fields = dict(line.split(": ", 1) for line in data.decode("utf-8").splitlines())
    if "version" not in fields or "topic_id" not in fields:
        raise ValueError(f"{path} lacks a version or a topic id")
    _refuse_newer(int(fields["version"]), path)
    return decode_id(fields["topic_id"])


def encode_meta(meta: MetaProperties) -> bytes:
    return (
        f"version={META_VERSIONS[-1]}\ncluster.id={meta.cluster_id}\nnode.id={meta.node_id}\n"
        f"directory.id={encode_id(meta.directory_id)}\n"
    ).encode()


def decode_meta(data: bytes, path: str) -> MetaProperties:
    """Raises RunnelError: nothing can be done with the data of nobody knows whom."""
    try:
        return _decode_meta(data, path)
    except ValueError as error:
        raise RunnelError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} is damaged ({error}): restore it, or write it anew with version=1, cluster.id,"
            " node.id and directory.id of this broker",
        ) from error


def _decode_meta(data: bytes, path: str) -> MetaProperties:
    lines = [line.strip() for line in data.decode("utf-8").splitlines()]
    fields = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    version = int(fields.get("version", "0"))
    if version not in META_VERSIONS:
        raise RunnelError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} has version {version}; this release reads {META_VERSIONS[-1]}",
        )
    node_id = fields.get("node.id", fields.get("broker.id", "-1"))
    directory = fields.get("directory.id")
    return MetaProperties(
        cluster_id=fields.get("cluster.id", ""),
        node_id=int(node_id),
        directory_id=decode_id(directory) if directory else bytes(16),
    )


def encode_clean_shutdown(marker: CleanShutdown) -> bytes:
    return json.dumps({"version": VERSION, "brokerEpoch": marker.broker_epoch}).encode()


def decode_clean_shutdown(data: bytes) -> CleanShutdown:
    """Kafka takes an unreadable marker for a clean stop with an unknown epoch; so do we."""
    try:
        fields = json.loads(data)
        return CleanShutdown(int(fields["brokerEpoch"]))
    except (ValueError, KeyError, TypeError):
        return CleanShutdown(-1)


def encode_boot(boot: Boot) -> bytes:
    fields = {"version": VERSION, "bootId": boot.boot_id, "failed": boot.failed}
    return json.dumps(fields).encode()


def decode_boot(data: bytes) -> Boot:
    """Nonsense reads as another boot: the cautious answer."""
    try:
        fields = json.loads(data)
        return Boot(str(fields["bootId"]), bool(fields["failed"]))
    except (ValueError, KeyError, TypeError):
        return Boot("", True)


def encode_id(value: TopicId) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def decode_id(text: str) -> TopicId:
    value = base64.urlsafe_b64decode(text.strip() + "==")
    if len(value) != 16:
        raise ValueError(f"{text!r} is not an id of 16 bytes")
    return value
