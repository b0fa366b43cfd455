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
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


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
