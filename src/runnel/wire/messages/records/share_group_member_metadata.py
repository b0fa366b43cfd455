"""ShareGroupMemberMetadata (key 10); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    STRING,
    array_of,
    message,
    nullable,
    wire,
)


@message(api_key=10, versions=(0, 0))
class ShareGroupMemberMetadataKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@message(api_key=10, versions=(0, 0), flexible_since=0)
class ShareGroupMemberMetadataValue:
    rack_id: str | None = wire(nullable(STRING), default="")
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    subscribed_topic_names: list[str] = wire(array_of(STRING), default_factory=list)
