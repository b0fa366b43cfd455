"""Which partition a key belongs to: the same answer as Kafka's own Java client gives."""

from struct import unpack_from
from typing import Final

_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def partition_of(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def murmur2(data: bytes) -> int:
    """The 32-bit hash by Austin Appleby, seeded as Kafka does."""
    whole = len(data) & ~3
    digest = (0x9747B28C ^ len(data)) & _MASK
    for word in unpack_from(f"<{whole >> 2}I", data):
        word = word * _M & _MASK
        word ^= word >> 24
        digest = digest * _M & _MASK ^ word * _M & _MASK
    if len(data) > whole:
        digest ^= int.from_bytes(data[whole:], "little")
        digest = digest * _M & _MASK
    digest ^= digest >> 13
    digest = digest * _M & _MASK
    return digest ^ digest >> 15
