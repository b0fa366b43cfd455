"""Which partition a key belongs to: the same answer as Kafka's own Java client gives."""

from runnel.native.murmur2 import murmur2


def partition_of(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
