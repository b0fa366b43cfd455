"""Kafka's five codecs, with the output bounded before it is made.

A batch may say nothing about its size, so decompression writes into a buffer of a size we chose
and stops when that is full. The bound is the smaller of `max_bytes` and 1000 times the input
(never less than 1 MiB): beyond it `MESSAGE_TOO_LARGE`, which a producer answers by splitting its
batch. Bytes that are no stream of their codec, end early, or go on after the end are
`CORRUPT_MESSAGE`. What is accepted is what Kafka's Java accepts: several gzip members and several
zstd frames are one stream, a snappy stream is framed as by snappy-java or is one raw block, and
an lz4 frame has independent blocks. Codec libraries are imported at first use.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from runnel.errors import ErrorCode, RunnelError
from runnel.native.backend import unwritten
from runnel.ports import Readable

MAX_DECOMPRESSED_BYTES: Final = 64 << 20
MAX_RATIO: Final = 1000
ALWAYS_ALLOWED_BYTES: Final = 1 << 20  # small outputs may have any ratio

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, oldest compatible one
_XERIAL_BLOCK_BYTES: Final = 32 << 10
_GZIP_MAX_RATIO: Final = 1032  # 258 bytes in two bits
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_DEFAULT_LEVEL: Final = 9  # in Kafka this very level means the fast compressor
_LZ4_MAX_LEVEL: Final = 12
_LZ4_MIN_BLOCKS: Final = 4096  # always allowed; a longer stream needs blocks of a decent size
_LZ4_MIN_BLOCK_BYTES: Final = 64
_MEASURE_BYTES: Final = 1 << 20  # a reused window: fresh memory costs more than decompressing does


class Compression(IntEnum):
    """The three lowest bits of a batch's attributes, and the values of `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def codec_of(attributes: int) -> Compression:
    """Raises UNSUPPORTED_COMPRESSION_TYPE for the three numbers that Kafka has not given out."""
    number = attributes & 7
    if number > Compression.ZSTD:
        raise RunnelError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression type {number}"
        )
    return Compression(number)


def decompress(
    codec: Compression, data: Readable, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Readable:
    """The whole stream, at most `max_bytes` of it; for NONE the very `data`."""
    limit = min(max_bytes, max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * len(data)))
    match codec:
        case Compression.NONE:
            return data
        case Compression.SNAPPY:
            return _decompress_snappy(data, limit)
        case Compression.LZ4:
            _ensure_java_reads_lz4(data)
    size = min(limit, _likely_size(codec, data, limit))
    out = _decompress_into(codec, data, size)
    if out is None and size < limit:
        out = _decompress_into(codec, data, _measure(codec, data, limit))
    if out is None:
        raise _too_large(limit)
    return out


def compress(codec: Compression, data: Readable, level: int | None = None) -> Readable:
    """A stream that Kafka's Java reads. `level` is Kafka's for that codec; None is its default."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.SNAPPY:
            return _compress_snappy(data)
        case Compression.LZ4:
            return _compress_lz4(data, level)
    import cramjam

    if codec is Compression.GZIP:
        out = cramjam.gzip.compress(data, level=6 if level in (None, -1) else level)
    else:
        out = cramjam.zstd.compress(data, level=3 if level is None else level)
    return memoryview(out)


def _likely_size(codec: Compression, data: Readable, limit: int) -> int:
    if codec is Compression.GZIP and len(data) >= 18:
        claimed = int.from_bytes(data[-4:], "little")  # of the last member, almost always the only
        if claimed > _GZIP_MAX_RATIO * len(data):
            raise _corrupt(f"gzip: {len(data)} bytes cannot hold {claimed}")
        if claimed > limit:
            raise _too_large(limit)
        return claimed
    return max(64 << 10, 8 * len(data))


def _decompress_into(codec: Compression, data: Readable, size: int) -> bytearray | None:
    """None when the stream is longer than `size`."""
    import cramjam

    decoders = {
        Compression.GZIP: cramjam.gzip.decompress_into,
        Compression.LZ4: cramjam.lz4.decompress_into,
        Compression.ZSTD: cramjam.zstd.decompress_into,
    }
    out = unwritten(size)
    try:
        written = decoders[codec](data, out)
    except cramjam.DecompressionError as error:
        if "failed to write whole buffer" in str(error):
            return None
        raise _corrupt(f"{codec.name.lower()}: {error}") from None
    del out[written:]
    return out


def _measure(codec: Compression, data: Readable, limit: int) -> int:
    """The size of an unusually dense stream, found without room for it."""
    match codec:
        case Compression.LZ4:
            pieces = _lz4_pieces(data)
        case Compression.ZSTD:
            pieces = _zstd_pieces(data)
        case _:
            return limit
    size = 0
    for piece in pieces:
        size += piece
        if size > limit:
            raise _too_large(limit)
    return size


def _lz4_pieces(data: Readable) -> Iterator[int]:
    import lz4.frame

    stream = lz4.frame.LZ4FrameDecompressor()
    try:
        yield len(stream.decompress(data, _MEASURE_BYTES))
        while not stream.eof and not stream.needs_input:
            yield len(stream.decompress(b"", _MEASURE_BYTES))
    except RuntimeError as error:
        raise _corrupt(f"lz4: {error}") from None


def _zstd_pieces(data: Readable) -> Iterator[int]:
    import zstandard

    window = bytearray(_MEASURE_BYTES)
    stream = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    try:
        while written := stream.readinto(window):
            yield written
    except zstandard.ZstdError as error:
        raise _corrupt(f"zstd: {error}") from None


def _compress_lz4(data: Readable, level: int | None) -> bytes:
    import lz4.frame

    fast = level is None or level == _LZ4_DEFAULT_LEVEL
    out: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast else max(3, min(level or 0, _LZ4_MAX_LEVEL)),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return out


def _ensure_java_reads_lz4(data: Readable) -> None:
    """Java wants version 1, independent blocks, no dictionary, a known block size, one frame.

    It stops at the end of the first frame, so what a second one holds would be lost to it.
    """
    if len(data) < 7 or data[:4] != _LZ4_MAGIC:
        raise _corrupt("lz4: no frame")
    flags, block = data[4], data[5]
    if flags & 0b1110_0011 != 0b0110_0000 or block & 0b1000_1111 or block >> 4 < 4:
        raise _corrupt(f"lz4: frame flags {flags:#04x} {block:#04x} are not Kafka's")
    position = 15 if flags & 0b1000 else 7
    tail = 4 if flags & 0b1_0000 else 0
    for _ in range(_LZ4_MIN_BLOCKS + len(data) // _LZ4_MIN_BLOCK_BYTES):
        size = int.from_bytes(data[position : position + 4], "little") & 0x7FFF_FFFF
        position += 4
        if size == 0:
            break
        position += size + tail
    else:
        raise _corrupt("lz4: too many blocks of a few bytes")
    if position + (4 if flags & 0b100 else 0) < len(data):
        raise _corrupt("lz4: bytes after the frame")


def _decompress_snappy(data: Readable, limit: int) -> bytearray:
    import cramjam

    blocks = list(_xerial_blocks(memoryview(data))) if _is_xerial(data) else [memoryview(data)]
    try:
        sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
        if sum(sizes) > limit:
            raise _too_large(limit)
        out = unwritten(sum(sizes))
        position = 0
        with memoryview(out) as target:
            for block, size in zip(blocks, sizes, strict=True):
                position += cramjam.snappy.decompress_raw_into(
                    block, target[position : position + size]
                )
    except cramjam.DecompressionError as error:
        raise _corrupt(f"snappy: {error}") from None
    if position != len(out):
        raise _corrupt("snappy: a block is shorter than it says")
    return out


def _is_xerial(data: Readable) -> bool:
    return data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC


def _xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    """Blocks of one or several concatenated streams; each starts with a header of 16 bytes."""
    position = 0
    while position < len(data):
        if _is_xerial(data[position:]):
            position += len(_XERIAL_HEADER)
            if position > len(data):
                raise _corrupt("snappy: the stream header is cut off")
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise _corrupt("snappy: a block is cut off")
        yield data[position : position + size]
        position += size


def _compress_snappy(data: Readable) -> bytearray:
    import cramjam

    out = bytearray(_XERIAL_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = memoryview(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += struct.pack(">i", len(block))
        out += block
    return out


def _corrupt(why: str) -> RunnelError:
    return RunnelError(ErrorCode.CORRUPT_MESSAGE, why)


def _too_large(limit: int) -> RunnelError:
    return RunnelError(
        ErrorCode.MESSAGE_TOO_LARGE, f"the records decompress to more than {limit} bytes"
    )
