"""The hash by which Kafka's own Java client finds the partition of a key."""

from struct import unpack_from
from typing import Final

_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


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
