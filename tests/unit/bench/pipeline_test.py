"""The generator's counters: every reply counted once however it is cut, every failure noticed."""

import random
import struct

import pytest

from runnel.bench.frames import ReplyShape
from runnel.bench.pipeline import EqualReplies, FetchReplies, LoadError, Replies

SHAPE = ReplyShape(size=20, zeros=(12, 13))
GOOD = struct.pack(">i", 16) + b"\x07" * 8 + b"\0\0" + b"\x07" * 6


def feed_in_pieces(replies: Replies, data: bytes, seed: int) -> int:
    chance, position, count = random.Random(seed), 0, 0
    while position < len(data):
        size = chance.randint(1, 50)
        count += replies.feed(memoryview(data)[position : position + size])
        position += size
    return count


@pytest.mark.parametrize("seed", range(20))
def test_produce_replies_are_counted_however_they_are_cut(seed: int) -> None:
    replies = EqualReplies(SHAPE)
    assert feed_in_pieces(replies, GOOD * 100, seed) == 100
    assert replies.byte_count == 2000


@pytest.mark.parametrize("at", [0, 3, 12, 13])
@pytest.mark.parametrize("seed", range(5))
def test_a_failed_or_longer_produce_reply_stops_the_load(at: int, seed: int) -> None:
    bad = bytearray(GOOD)
    bad[at] ^= 0x11
    with pytest.raises(LoadError):
        feed_in_pieces(EqualReplies(SHAPE), GOOD * 50 + bytes(bad) + GOOD * 50, seed)


@pytest.mark.parametrize("seed", range(20))
def test_fetch_replies_are_counted_however_they_are_cut(seed: int) -> None:
    sizes = [random.Random(seed).randint(30, 90) for _ in range(100)]
    data = b"".join(struct.pack(">i", size) + bytes(size) for size in sizes)
    replies = FetchReplies(least_bytes=30)
    assert feed_in_pieces(replies, data, seed) == 100
    assert replies.byte_count == sum(sizes) + 400


@pytest.mark.parametrize("seed", range(5))
def test_a_fetch_reply_without_its_records_stops_the_load(seed: int) -> None:
    data = struct.pack(">i", 40) + bytes(40) + struct.pack(">i", 29) + bytes(29)
    with pytest.raises(LoadError):
        feed_in_pieces(FetchReplies(least_bytes=30), data, seed)
