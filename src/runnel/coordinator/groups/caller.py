"""Who sends a request to a group, as its members are shown later."""

from typing import NamedTuple


class Caller(NamedTuple):
    client_id: str
    host: str  # as Kafka writes an address: with a slash before it
    api_version: int
