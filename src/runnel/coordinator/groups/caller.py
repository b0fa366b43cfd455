"""Who sends a request to a group, as its members are shown later."""


class Caller:
    """A class and no tuple: one is made for every heartbeat, and a named tuple is interpreted."""

    __slots__ = ("api_version", "client_id", "host")

    def __init__(self, client_id: str, host: str, api_version: int) -> None:
        self.client_id = client_id
        self.host = host  # as Kafka writes an address: with a slash before it
        self.api_version = api_version
