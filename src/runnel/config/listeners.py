"""The named addresses a broker listens on, and those it tells clients.

An advertised listener with an empty host or port 0 stands for what the socket was bound to; the
server fills it in. Until the security issue only PLAINTEXT can be served: any other protocol is
refused here rather than served without its protection.
"""

from collections.abc import Iterable
from typing import NamedTuple

from runnel.config.definition import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MAX_LISTENERS = 32


class Listener(NamedTuple):
    name: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{host_and_port(self.host, self.port)}"


class HttpListener(NamedTuple):
    """Where metrics and health are told. `is_given`: by the operator, so no other will do."""

    host: str
    port: int
    is_given: bool


def host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


HTTP_LISTENER = "runnel.http.listener"
OFF = "off"


def parse_http(given: str | None, default: str, kafka: Iterable[Listener]) -> HttpListener | None:
    """None: nowhere. Who lets the broker's own port be any free one means this one too.

    Raises ConfigError.
    """
    text = default if given is None else given.strip()
    if text.lower() in ("", OFF):
        return None
    host, colon, port_text = text.rpartition(":")
    if not (colon and host and port_text.isascii() and port_text.isdigit()):
        raise ConfigError(f"{HTTP_LISTENER}: {text[:200]!r} is neither host:port nor {OFF}")
    port = int(port_text[:6])
    if port > 65535:
        raise ConfigError(f"{HTTP_LISTENER}: {text[:200]!r} has no port between 0 and 65535")
    if given is not None and any(listener.port == port != 0 for listener in kafka):
        raise ConfigError(f"{HTTP_LISTENER}: port {port} is one of listeners; choose another")
    if given is None and all(listener.port == 0 for listener in kafka):
        port = 0
    return HttpListener(host.removeprefix("[").removesuffix("]"), port, given is not None)


def parse_protocol_map(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.rpartition(":")
        if not colon or protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(f"listener.security.protocol.map: {pair!r} names no protocol")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_listeners(option: str, texts: Iterable[str], protocols: dict[str, str]) -> list[Listener]:
    """Raises ConfigError naming `option`. Names are unique, and so are ports other than 0."""
    found: list[Listener] = []
    for text in filter(None, texts):
        listener = _parse(option, text, protocols)
        if any(other.name == listener.name for other in found):
            raise ConfigError(f"{option}: each listener must have a different name, in {text!r}")
        if option == "listeners" and any(o.port == listener.port != 0 for o in found):
            raise ConfigError(f"{option}: each listener must have a different port, in {text!r}")
        found.append(listener)
        if len(found) > MAX_LISTENERS:
            raise ConfigError(f"{option}: more than {MAX_LISTENERS} listeners")
    return found


def _parse(option: str, text: str, protocols: dict[str, str]) -> Listener:
    name, separator, address = text.partition("://")
    name = name.strip().upper()
    host, colon, port_text = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (separator and name and colon and port_text.isascii() and port_text.isdigit()):
        raise ConfigError(f"{option}: {text!r} is not NAME://host:port")
    port = int(port_text[:6])
    if port > 65535:
        raise ConfigError(f"{option}: {text!r} has no port between 0 and 65535")
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"{option}: no security protocol for listener {name}; "
            "add it to listener.security.protocol.map"
        )
    if protocol != "PLAINTEXT":
        raise ConfigError(f"{option}: {text!r} needs {protocol}, which is not supported yet")
    return Listener(name, protocol, host, port)
