"""Keys go where Kafka's Java client puts them."""

import pytest

from runnel.client.partitioner import partition_of
from runnel.native.murmur2 import murmur2


@pytest.mark.parametrize(
    ("key", "signed"),
    [  # from the tests of Kafka's own `Utils.murmur2`
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_every_key_has_a_partition() -> None:
    for length in range(40):
        assert 0 <= partition_of(b"\xff" * length, 7) < 7
