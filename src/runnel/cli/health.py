"""`runnel health`: does a broker answer? For HEALTHCHECK, probes and scripts: status 0 or 1.

It asks what every client asks first, ApiVersions, by eighteen bytes of its own: a probe runs every
few seconds, and must not cost the import of a client. Any Kafka broker can be asked.
"""

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from struct import Struct, pack
from typing import Final

DEFAULT: Final = "127.0.0.1:9092"
VARIABLE: Final = "RUNNEL_BOOTSTRAP_SERVER"
API_VERSIONS: Final = 18
CORRELATION_ID: Final = 0x52554E4C
TIMEOUT_S: Final = 3.0
TIMEOUT_MAX_S: Final = 86_400.0  # a socket takes no `inf`
REPLY_BYTES_MAX: Final = 1 << 20
UNHEALTHY: Final = 1
BAD_INPUT: Final = 2
_REPLY: Final = Struct(">iih")  # size, correlation id, error code


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="runnel health",
        allow_abbrev=False,
        description="Ask a broker whether it answers. Status 0 if it does, 1 if not.",
    )
    add = parser.add_argument
    add("-b", "--bootstrap-server", metavar="HOST:PORT", help=f"else {VARIABLE} is asked")
    add("--timeout", type=float, default=TIMEOUT_S, metavar="S", help=f"default {TIMEOUT_S:.0f} s")
    add("-q", "--quiet", action="store_true", help="say nothing if it answers")
    add("--json", action="store_true", help="print a JSON object, whether it answers or not")
    return parser


def main(argv: Sequence[str]) -> int:
    options = arguments().parse_args(argv)
    given = options.bootstrap_server or os.environ.get(VARIABLE) or DEFAULT
    address = str(given).partition(",")[0].strip()
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        sys.stderr.write(f"runnel health: {address!r} is not an address; write host:port\n")
        return BAD_INPUT
    why: str | None = None
    timeout_s = min(max(0.01, options.timeout), TIMEOUT_MAX_S)
    try:
        ask(host.removeprefix("[").removesuffix("]"), int(port), timeout_s)
    except UnicodeError:  # Python's, of a part that is empty or too long
        why = "that is no name of a host"
    except OSError as error:
        why = "it does not answer in time" if isinstance(error, TimeoutError) else str(error)
    if options.json:
        import json  # a probe does not need it

        answer = {"broker": address, "answers": why is None, "reason": why}
        sys.stdout.write(json.dumps(answer) + "\n")
    elif why is not None:
        sys.stderr.write(f"runnel health: {address}: {why}\n")
    elif not options.quiet:
        sys.stdout.write(f"{address} answers\n")
    return 0 if why is None else UNHEALTHY


def ask(host: str, port: int, timeout_s: float) -> None:
    """Raises OSError if nobody answers as a broker does."""
    body = pack(">hhih", API_VERSIONS, 0, CORRELATION_ID, -1)
    with socket.create_connection((host, port), timeout=timeout_s) as sock:
        sock.sendall(pack(">i", len(body)) + body)
        reply = b""
        while len(reply) < _REPLY.size:
            more = sock.recv(4096)
            if not more:
                raise OSError("it closed the connection: no Kafka broker, or it is stopping")
            reply += more
    size, correlation_id, error_code = _REPLY.unpack_from(reply)
    if not 0 < size < REPLY_BYTES_MAX or correlation_id != CORRELATION_ID:
        raise OSError("what listens there is no Kafka broker")
    if error_code:
        raise OSError(f"it answers with error {error_code}")
