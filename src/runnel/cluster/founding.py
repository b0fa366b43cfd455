"""The first moment of a cluster: its id, made here or taken from a data folder that has one."""

import base64
from random import Random
from typing import NamedTuple
from uuid import UUID

from runnel.cluster import decide, values
from runnel.cluster.image import load
from runnel.ports import MetadataStore
from runnel.types import TopicId


class Founded(NamedTuple):
    cluster_id: str
    is_new: bool  # this process named the cluster just now


async def ensure_cluster(store: MetadataStore, random: Random, proposal: str) -> Founded:
    """The cluster's id; whoever comes first names it, with `proposal` if that is not empty."""
    named = ""
    while True:
        image = load(await store.read(values.CLUSTER))
        if image.cluster is not None:
            return Founded(image.cluster_id, is_new=image.cluster_id == named)
        # The same name at every attempt: one of unknown outcome may be applied late.
        named = named or proposal or text_of(new_id(random))
        await store.txn(*decide.found_cluster(named))


def new_id(random: Random) -> TopicId:
    """A random UUID whose base64 form no command line takes for an option, as Kafka makes them."""
    while True:
        raw = UUID(bytes=random.randbytes(16), version=4).bytes
        if not text_of(raw).startswith("-"):
            return raw


def text_of(raw: TopicId) -> str:
    """As Kafka writes a UUID: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
