"""The first moment of a cluster: its id, made here or taken from a data folder that has one."""

import base64
from random import Random

from runnel.cluster import decide, values
from runnel.cluster.image import load
from runnel.ports import MetadataStore, Put
from runnel.types import TopicId


async def ensure_cluster(store: MetadataStore, random: Random, proposal: str) -> str:
    """The cluster's id; whoever comes first names it, with `proposal` if that is not empty."""
    named = proposal
    while True:
        image = load(await store.read(values.CLUSTER))
        if image.cluster is not None:
            return image.cluster_id
        # The same name at every attempt: one of unknown outcome may be applied late.
        named = named or text_of(new_id(random))
        await store.txn(*decide.found_cluster(named))


async def is_adopted(store: MetadataStore, broker_id: int) -> bool:
    """Whether the metadata knows every topic in that broker's data folders.

    False until the first start is over: the folders may be another broker's, and all that is known
    of their topics is in them.
    """
    key = values.adopted_key(broker_id)
    return any(entry.key == key for entry in (await store.read(key)).entries)


async def note_adopted(store: MetadataStore, broker_id: int) -> None:
    while not await is_adopted(store, broker_id):
        await store.txn([], [Put(values.adopted_key(broker_id), b"{}")])


def new_id(random: Random) -> TopicId:
    """A random UUID whose base64 form no command line takes for an option, as Kafka makes them."""
    while True:
        raw = bytearray(random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40  # version 4, drawn at random
        raw[8] = raw[8] & 0x3F | 0x80
        if not text_of(raw).startswith("-"):
            return bytes(raw)


def text_of(raw: TopicId | bytearray) -> str:
    """As Kafka writes a UUID: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
