"""Connections of a Spark worker, kept between its tasks.

Spark gives task after task to the same Python process: what was connected for one is there for the
next. A connection is used by one reader at a time; one with an answer left unread is not kept.
"""

import os
from collections.abc import Mapping
from typing import Final

from runnel.client.cluster import Cluster, addresses_of

CLIENT_ID: Final = "runnel-spark"
IDLE_MAX: Final = 8  # per cluster and process; a Spark worker needs one
BOOTSTRAP: Final = "bootstrap.servers"

_Key = tuple[int, str, str]
_idle: Final[dict[_Key, list[Cluster]]] = {}


class ClientOptionError(ValueError):
    """A `kafka.*` option is missing or wrong; the message names it."""


def take(client: Mapping[str, str], timeout_ms: int) -> Cluster:
    """A cluster that nobody else uses until it is given back. Connects when first asked."""
    kept = _idle.get(_key_of(client))
    cluster = kept.pop() if kept else _opened(client)
    cluster.timeout_s = timeout_ms / 1000
    return cluster


def give_back(client: Mapping[str, str], cluster: Cluster) -> None:
    kept = _idle.setdefault(_key_of(client), [])
    if len(kept) < IDLE_MAX:
        kept.append(cluster)
    else:
        cluster.close()


def close_all() -> None:
    """For tests, which look for what was left open."""
    for kept in _idle.values():
        for cluster in kept:
            cluster.close()
    _idle.clear()


def integer(client: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    """The number under this name of Kafka's. Raises ClientOptionError."""
    text = client.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ClientOptionError(f"kafka.{name}={text}: write a number from {least} on")
    return value


def _opened(client: Mapping[str, str]) -> Cluster:
    servers = client.get(BOOTSTRAP, "")
    try:
        addresses = addresses_of(servers)
    except ValueError as error:
        raise ClientOptionError(f"kafka.{BOOTSTRAP}={servers}: {error}") from None
    protocol = client.get("security.protocol", "PLAINTEXT")
    if protocol.upper() != "PLAINTEXT":
        raise ClientOptionError(
            f"kafka.security.protocol={protocol}: only PLAINTEXT is spoken here"
        )
    return Cluster(addresses, client_id=client.get("client.id", CLIENT_ID))


def _key_of(client: Mapping[str, str]) -> _Key:
    # The process: what a parent opened is not used by a fork of it.
    return os.getpid(), client.get(BOOTSTRAP, ""), client.get("client.id", CLIENT_ID)
