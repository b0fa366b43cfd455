"""The APIs of Kafka 4.3.1: their numbers, versions, header versions and message classes.

Message classes are imported when they are first asked for, so that a broker does not pay for
ninety modules at its start.
"""

from importlib import import_module
from typing import Any, Final, NamedTuple

from runnel.wire.messages.index import ROWS, ApiKey
from runnel.wire.schema import ALWAYS


class Api(NamedTuple):
    """`versions` are those that a Kafka 4.3.1 broker offers; unstable ones are not among them."""

    key: ApiKey
    name: str
    module: str
    versions: range
    flexible_since: int

    def request_class(self) -> type[Any]:
        return self._class("Request")

    def response_class(self) -> type[Any]:
        return self._class("Response")

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.flexible_since else 1

    def response_header_version(self, version: int) -> int:
        """A client that asks for ApiVersions cannot know yet what we speak: always version 0."""
        return 1 if version >= self.flexible_since and self.key != ApiKey.API_VERSIONS else 0

    def _class(self, role: str) -> type[Any]:
        cls: type[Any] = getattr(import_module(self.module), self.name + role)
        return cls


APIS: Final[dict[int, Api]] = {
    key: Api(
        ApiKey(key),
        name,
        f"runnel.wire.messages.{file}",
        range(first, last + 1),
        ALWAYS if flexible_since is None else flexible_since,
    )
    for key, (file, name, first, last, flexible_since) in ROWS.items()
}
