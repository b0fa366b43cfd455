"""The first moment of a cluster: its id, and the topics of a data folder that came before it.

A folder that Kafka wrote knows its cluster id and its topic ids, but not the topics' settings:
those are in Kafka's own metadata log, which is not read. What is adopted therefore keeps its
records for ever (`retention.ms=-1`) until somebody says otherwise.
"""

import base64
from collections.abc import Mapping
from random import Random
from typing import NamedTuple
from uuid import UUID

from runnel.cluster import decide, values
from runnel.cluster.image import load
from runnel.ports import MetadataStore
from runnel.types import TopicId

ADOPTED_CONFIGS: Mapping[str, str] = {"retention.ms": "-1"}


class Founded(NamedTuple):
    cluster_id: str
    is_new: bool  # this process named the cluster just now


class FoundTopic(NamedTuple):
    """A topic as its folders tell of it: the first leader epoch that each partition may get."""

    name: str
    topic_id: TopicId
    first_epochs: tuple[int, ...]  # by partition


async def ensure_cluster(store: MetadataStore, random: Random, proposal: str) -> Founded:
    """The cluster's id; whoever comes first names it, with `proposal` if that is not empty."""
    is_new = False
    while True:
        image = load(await store.read(values.CLUSTER))
        if image.cluster is not None:
            return Founded(image.cluster_id, is_new)
        await store.txn(*decide.found_cluster(proposal or text_of(new_id(random))))
        is_new = True


def new_id(random: Random) -> TopicId:
    """A random UUID whose base64 form no command line takes for an option, as Kafka makes them."""
    while True:
        raw = UUID(bytes=random.randbytes(16), version=4).bytes
        if not text_of(raw).startswith("-"):
            return raw


def text_of(raw: TopicId) -> str:
    """As Kafka writes a UUID: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
