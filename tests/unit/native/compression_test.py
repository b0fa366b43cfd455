"""Bounded decompression: what is accepted is what Kafka's Java accepts, and it is never much."""

import gzip
import random
import struct
import time
import zlib
from collections.abc import Callable
from functools import cache, partial

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.errors import ErrorCode, RunnelError
from runnel.native.compression import (
    ALWAYS_ALLOWED_BYTES,
    Compression,
    codec_of,
    compress,
    decompress,
)
from runnel.ports import Readable

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
each_codec = pytest.mark.parametrize("codec", CODECS)
pytestmark = pytest.mark.usefixtures("decoder")

TEXT = b"".join(b"line %d of a text that shrinks well\n" % number for number in range(4000))
SECONDS_FOR_A_BOMB = 0.1  # the aim is half of it; slow machines run this too


def code_of(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(RunnelError) as caught:
        work()
    return caught.value.code


def raw_snappy(data: Readable) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def lz4_frame(data: bytes, **options: object) -> bytes:
    frame: bytes = lz4.frame.compress(data, **{"block_linked": False, **options})
    return frame


@each_codec
@given(data=st.binary(max_size=2000) | st.integers(0, 300_000).map(bytes))
@settings(max_examples=30, deadline=None)
def test_round_trip(codec: Compression, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@each_codec
@pytest.mark.parametrize("level", [None, -1, 1, 3, 9])
def test_every_level_is_read_back(codec: Compression, level: int | None) -> None:
    assert bytes(decompress(codec, compress(codec, TEXT, level))) == TEXT


@pytest.mark.parametrize(
    ("codec", "stream"),
    [
        (Compression.GZIP, gzip.compress(TEXT)),
        (Compression.GZIP, gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])),
        (Compression.SNAPPY, raw_snappy(TEXT)),
        (Compression.LZ4, lz4_frame(TEXT)),
        (Compression.LZ4, lz4_frame(TEXT, content_checksum=True, block_checksum=True)),
        (Compression.LZ4, lz4_frame(TEXT, store_size=False, block_size=4)),
        (Compression.ZSTD, zstandard.ZstdCompressor().compress(TEXT)),
        (Compression.ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)),
        (
            Compression.ZSTD,
            zstandard.ZstdCompressor().compress(TEXT[:99])
            + zstandard.ZstdCompressor().compress(TEXT[99:]),
        ),
    ],
)
def test_streams_of_other_writers(codec: Compression, stream: bytes) -> None:
    assert bytes(decompress(codec, stream)) == TEXT


def test_several_snappy_streams_are_one() -> None:
    streams = bytes(compress(Compression.SNAPPY, TEXT[:99])) + bytes(
        compress(Compression.SNAPPY, TEXT[99:])
    )
    assert bytes(decompress(Compression.SNAPPY, streams)) == TEXT


@pytest.mark.parametrize(
    "stream",
    [
        lz4_frame(TEXT, block_linked=True),
        lz4_frame(TEXT[:99]) + lz4_frame(TEXT[99:]),
        lz4_frame(TEXT) + b"\x50\x2a\x4d\x18\x00\x00\x00\x00",
        lz4_frame(b"x") + bytes(100),
    ],
    ids=["linked blocks", "two frames", "a skippable frame", "zeros after it"],
)
def test_lz4_that_java_would_not_read_is_refused(stream: bytes) -> None:
    assert code_of(lambda: decompress(Compression.LZ4, stream)) == ErrorCode.CORRUPT_MESSAGE


def test_lz4_of_countless_blocks_is_refused() -> None:
    head = lz4_frame(b"", store_size=False)[:7]
    stream = head + b"\x01\x00\x00\x80x" * 50_000 + bytes(4)
    assert code_of(lambda: decompress(Compression.LZ4, stream)) == ErrorCode.CORRUPT_MESSAGE


@each_codec
def test_every_truncation_is_refused(codec: Compression) -> None:
    stream = bytes(compress(codec, TEXT[:3000]))
    for size in range(len(stream)):
        if codec is Compression.SNAPPY and size == 16:
            continue  # a stream header and no block is an empty stream
        code = code_of(partial(decompress, codec, stream[:size]))
        assert code == ErrorCode.CORRUPT_MESSAGE, size


@each_codec
def test_bytes_after_the_end_are_refused(codec: Compression) -> None:
    for tail in (b"x", b"garbage" * 5, bytes(4)):
        stream = bytes(compress(codec, TEXT)) + tail
        if codec is Compression.SNAPPY and tail == bytes(4):
            continue  # a block of no bytes
        assert code_of(partial(decompress, codec, stream)) == ErrorCode.CORRUPT_MESSAGE


@each_codec
@given(data=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_is_refused_or_decompressed(codec: Compression, data: bytes) -> None:
    try:
        decompress(codec, data)
    except RunnelError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@each_codec
def test_output_is_bounded_by_the_callers_limit(codec: Compression) -> None:
    stream = compress(codec, TEXT)
    assert len(decompress(codec, stream, len(TEXT))) == len(TEXT)
    too_large = code_of(lambda: decompress(codec, stream, len(TEXT) - 1))
    assert too_large == ErrorCode.MESSAGE_TOO_LARGE


def test_a_ratio_beyond_1000_is_refused_past_the_first_mebibyte() -> None:
    codec = Compression.ZSTD
    dense = compress(codec, bytes(ALWAYS_ALLOWED_BYTES))
    assert len(dense) * 1000 < ALWAYS_ALLOWED_BYTES
    assert len(decompress(codec, dense)) == ALWAYS_ALLOWED_BYTES
    denser = compress(codec, bytes(ALWAYS_ALLOWED_BYTES + 1))
    assert code_of(lambda: decompress(codec, denser)) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_dense_stream_within_the_limits_is_read() -> None:
    """The first guess of its size is far too small."""
    data = bytes(8 << 20) + random.Random(1).randbytes(16 << 10)
    for codec in CODECS:
        assert bytes(decompress(codec, compress(codec, data))) == data, codec


@cache
def bomb_of(codec: Compression) -> bytes:
    """At most 1 MiB that say or hold 1 GiB, or as much as the codec can."""
    zeros = bytes(64 << 20)
    match codec:
        case Compression.GZIP:  # its CRC is wrong, which nobody gets to see
            deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
            part = deflate.compress(zeros) + deflate.flush(zlib.Z_FULL_FLUSH)
            return (
                gzip.compress(b"")[:10] + part * 16 + b"\x03\x00" + struct.pack("<II", 0, 1 << 30)
            )
        case Compression.SNAPPY:
            return b"\x80\x80\x80\x80\x04" + raw_snappy(bytes(16 << 20))[4:]
        case Compression.LZ4:
            return lz4_frame(zeros * 4, store_size=False)
        case _:
            stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
            return b"".join(stream.compress(zeros) for _ in range(16)) + stream.flush()


@each_codec
def test_bombs_are_refused_at_once(codec: Compression) -> None:
    bomb = bomb_of(codec)
    assert len(bomb) <= 1.1 * (1 << 20), len(bomb)
    spent = []
    for _ in range(3):  # the fastest, as the machine has other work too
        start = time.process_time()
        assert code_of(lambda: decompress(codec, bomb)) == ErrorCode.MESSAGE_TOO_LARGE
        spent.append(time.process_time() - start)
    print(f"{codec.name}: {min(spent) * 1000:.1f} ms")
    assert min(spent) < SECONDS_FOR_A_BOMB


def test_a_window_beyond_128_mib_is_refused() -> None:
    settings = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=False)
    stream = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    data = stream.compress(TEXT) + stream.flush()
    assert zstandard.get_frame_parameters(data).window_size == 256 << 20
    assert code_of(lambda: decompress(Compression.ZSTD, data)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codecs(number: int) -> None:
    assert code_of(lambda: codec_of(number)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
