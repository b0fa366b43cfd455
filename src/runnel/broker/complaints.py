"""Why a connection ends: one line with who it was, what it sent, and what to do about it.

Only ever reached when something went wrong, so it may take its time: nothing here is compiled.
"""

import contextlib
import logging
import socket
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.broker.log_fields import Fields
from runnel.config.listeners import host_and_port
from runnel.wire.apis import APIS, ApiKey

if TYPE_CHECKING:
    from runnel.broker.connection import Connection

_log = logging.getLogger(__name__)
_HEADER: Final = Struct(">hhih")
SHOWN_CHARACTERS_MAX: Final = 100

_HTTP: Final = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PRI ", b"CONN")
_TLS_HANDSHAKE: Final = b"\x16\x03"
_OTHER_PROGRAM: Final = "find out what connects from there, it speaks another protocol than Kafka's"


class Complaint(NamedTuple):
    """Of bytes that no Kafka client should send."""

    advice: str
    fields: Fields


def of_request(frame: memoryview) -> Complaint:
    """Of a request that cannot be read: as much of its header as can be."""
    if len(frame) < _HEADER.size:
        return Complaint(_OTHER_PROGRAM, {})
    key, version, correlation_id, client_id_bytes = _HEADER.unpack_from(frame)
    client_id = bytes(frame[10 : 10 + max(0, client_id_bytes)]).decode(errors="replace")
    fields: Fields = {
        "api": str(key),
        "api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id[:SHOWN_CHARACTERS_MAX],
    }
    if key not in APIS:
        return Complaint(_OTHER_PROGRAM, fields)
    fields["api"] = ApiKey(key).name
    versions = APIS[ApiKey(key)].versions
    if version not in versions:
        age = "newer than this broker" if version >= versions.stop else "older than Kafka 2.1"
        return Complaint(
            f"versions {versions.start} to {versions.stop - 1} are served; the client is {age}"
            " or did not ask ApiVersions: choose another version of it",
            fields,
        )
    return Complaint(
        "the client does not follow Kafka's protocol; update it, and if that does not help, report"
        " it with this line",
        fields,
    )


def of_size(first: bytes) -> Complaint:
    """Of a frame with an impossible size, by the four bytes that should have held it."""
    if first in _HTTP:
        advice = (
            "this is HTTP, and this port speaks Kafka's protocol; metrics and health are at the"
            " address `http` of the ready file"
        )
    elif first.startswith(_TLS_HANDSHAKE):
        advice = (
            "the client speaks TLS, and this listener is PLAINTEXT; set security.protocol=PLAINTEXT"
            " in the client, or choose another port"
        )
    elif first[0] < 0x10:  # up to 256 MB: it may well be meant
        advice = (
            "lower max.request.size in the client (message.max.bytes in librdkafka), or raise"
            " socket.request.max.bytes here"
        )
    else:
        advice = _OTHER_PROGRAM
    return Complaint(advice, {"first_bytes": first.hex()})


def tell_closed(connection: "Connection", sock: socket.socket, reason: str) -> None:
    """While the socket still knows its peer."""
    fields: Fields = {"peer": connection.host, "listener": connection.listener, "reason": reason}
    with contextlib.suppress(OSError):  # a peer that is gone has no port any more
        address = sock.getpeername()
        if isinstance(address, tuple):  # not of a Unix socket
            fields["peer"] = host_and_port(*address[:2])
    if connection.client_id:
        fields["client_id"] = connection.client_id
    complaint = connection.complaint
    if complaint is None:
        client = f" (client id {connection.client_id!r})" if connection.client_id else ""
        _log.info("connection from %s%s closed: %s", fields["peer"], client, reason, extra=fields)
        return
    fields |= complaint.fields
    details = [f"listener {connection.listener}"]
    if "api" in fields:
        details.append("{api} v{api_version}, correlation id {correlation_id}".format(**fields))
    if fields.get("client_id"):
        details.append(f"client id {fields['client_id']!r}")
    _log.warning(
        "connection from %s closed: %s (%s); %s",
        fields["peer"],
        reason,
        ", ".join(details),
        complaint.advice,
        extra=fields,
    )
