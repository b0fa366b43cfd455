"""What can be known to be wrong before anything is changed: ports, folders, and whose they are.

Each refusal is one line that says what to do next. What is checked here can still go wrong later,
when somebody else is quicker; then it is refused there.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from runnel.broker.listener import bind
from runnel.config.definition import ConfigError
from runnel.config.listeners import HTTP_LISTENER, HttpListener, Listener
from runnel.config.settings import Settings
from runnel.storage.data_folder import METADATA_STORE
from runnel.storage.files import OsDisk
from runnel.storage.store import read_identity

FREE_BYTES_MIN: Final = 4 << 20  # for the metadata; without them a broker could not say who it is


def ensure_possible(settings: Settings, warnings: list[str]) -> list[str]:
    """The folders that can be used; one that cannot, and is not the first, is only warned of.

    Raises ConfigError, and RunnelError for a folder whose owner cannot be told.
    """
    ensure_free(settings.listeners)
    _ensure_http_free(settings.http)
    usable: list[str] = []
    for folder in settings.log_dirs:
        try:
            ensure_usable(Path(folder), "log.dirs")
            usable.append(folder)
        except ConfigError as error:
            if not usable:  # the metadata is in the first
                raise
            warnings.append(f"{error}; its partitions are offline meanwhile")
    _ensure_one_owner(settings, usable)
    return usable


def ensure_free(listeners: Iterable[Listener]) -> None:
    for listener in listeners:
        try:
            bind(listener.host, listener.port).close()
        except OSError as error:
            address = f"{listener.host}:{listener.port}"
            raise ConfigError(f"cannot listen on {address}: {_advice(error)}") from None


def _ensure_http_free(http: HttpListener | None) -> None:
    """An address that the operator asked for; any other gives way to a free port."""
    if http is None or not http.is_given or http.port == 0:
        return
    try:
        bind(http.host, http.port).close()
    except OSError as error:
        why = (error.strerror or str(error)).rpartition(": ")[2]
        raise ConfigError(
            f"{HTTP_LISTENER}: cannot listen on {http.host}:{http.port}: {why}; choose another"
            " with --http HOST:PORT, or --http off"
        ) from None


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "another program listens there; stop it, or choose another port with --port"
        case errno.EACCES:
            return "that port needs rights of root; choose one above 1023 with --port"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address; choose another with --host"
        case _:
            return f"{(error.strerror or str(error)).rpartition(': ')[2]}; check --host and --port"


def ensure_usable(folder: Path, option: str) -> None:
    """The folder can be written, or be made."""
    nearest = folder
    while not nearest.exists():
        if nearest.is_symlink():
            raise ConfigError(
                f"{option}: {nearest} points at what is not there; mount it or mend the link"
            )
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ConfigError(
            f"{option}: {folder} cannot hold data, {nearest} is a file; choose another folder"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{option}: {nearest} is not writable for this user; change its rights, or choose"
            " another folder"
        )
    _ensure_room(nearest, option)


def _ensure_room(folder: Path, option: str) -> None:
    """A disk that fills up later only takes its own partitions offline."""
    room = os.statvfs(folder)
    free_bytes = room.f_bavail * room.f_frsize
    if room.f_blocks and free_bytes < FREE_BYTES_MIN:
        raise ConfigError(
            f"{option}: the disk of {folder} is full, {free_bytes} bytes are free; free at least"
            f" {FREE_BYTES_MIN}, or choose another folder"
        )


def _ensure_one_owner(settings: Settings, folders: list[str]) -> None:
    disk = OsDisk()
    first, *others = folders
    seen: dict[Path, str] = {}
    for folder in folders:
        one = seen.setdefault(Path(folder).resolve(), folder)
        if one is not folder:
            raise ConfigError(f"log.dirs: {one} and {folder} are one folder; remove one of them")
    known = {folder: read_identity(disk, folder) for folder in folders}
    owners = {folder: meta for folder, meta in known.items() if meta is not None}
    for folder, meta in owners.items():
        one, other = next(iter(owners.items()))
        if meta.cluster_id != other.cluster_id:
            raise ConfigError(
                f"log.dirs: {one} belongs to cluster {other.cluster_id} and {folder} to cluster"
                f" {meta.cluster_id}; leave one of them out"
            )
        if meta.node_id != other.node_id:
            raise ConfigError(
                f"log.dirs: {one} belongs to broker {other.node_id} and {folder} to broker"
                f" {meta.node_id}; leave one of them out"
            )
        if {"node.id", "broker.id"} & settings.given.keys() and meta.node_id != settings.node_id:
            raise ConfigError(
                f"{folder} belongs to broker {meta.node_id}, not {settings.node_id}; leave the"
                " broker's number out, or choose another folder with --data-dir"
            )
    for folder in others:
        if Path(folder, METADATA_STORE).exists() and not Path(first, METADATA_STORE).exists():
            raise ConfigError(
                f"log.dirs: the metadata is in {folder}, so it must be the first; {first} is not"
            )
