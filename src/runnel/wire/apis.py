"""The APIs of Kafka 4.3.1: their numbers, versions, header versions and message classes.

Message classes are imported when they are first asked for, so that a broker does not pay for
ninety modules at its start.
"""

from importlib import import_module
from typing import Any, Final, NamedTuple

from runnel.wire.messages.index import ROWS
from runnel.wire.messages.index import ApiKey as ApiKey
from runnel.wire.schema import ALWAYS


class Api(NamedTuple):
    """`versions` are those that a Kafka 4.3.1 broker offers; unstable ones are not among them."""

    name: str
    module: str
    versions: range
    flexible_since: int


APIS: Final[dict[int, Api]] = {
    key: Api(
        name,
        f"runnel.wire.messages.{file}",
        range(first, last + 1),
        ALWAYS if flexible_since is None else flexible_since,
    )
    for key, (file, name, first, last, flexible_since) in ROWS.items()
}


def request_type(key: int) -> type[Any]:
    return _message(APIS[key], "Request")


def response_type(key: int) -> type[Any]:
    return _message(APIS[key], "Response")


def _message(api: Api, role: str) -> type[Any]:
    cls: type[Any] = getattr(import_module(api.module), api.name + role)
    return cls


def request_header_version(key: int, version: int) -> int:
    """2 has tagged fields, 1 has none; the client id is written the old way in both."""
    return 2 if version >= APIS[key].flexible_since else 1


def response_header_version(key: int, version: int) -> int:
    """1 has tagged fields. A client that asks for ApiVersions cannot know what we speak yet, so
    that answer always has header version 0.
    """
    return 1 if version >= APIS[key].flexible_since and key != ApiKey.API_VERSIONS else 0
