"""Looking inside a client's batch, where a topic asks for it: the only part of produce that does.

Needed for `runnel.validation=records`, for compacted topics (every record must have a key), and
for a `compression.type` other than the producer's. Pure: bytes in, bytes out, so that it can run
on the loop for a small batch and in a worker for a large one.
"""

from typing import Final

from runnel.broker.client_batch import is_good, is_good_in_transaction, refusal
from runnel.config.topic import LogConfig
from runnel.native import records as native
from runnel.native.compression import Compression
from runnel.ports import Readable
from runnel.wire.batch import BatchHeader, compression_of

INLINE_BYTES_MAX: Final = 16 * 1024  # an uncompressed batch of this size takes some microseconds
_WANTED: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


def is_needed(config: LogConfig) -> bool:
    return (
        config.validation == "records"
        or "compact" in config.cleanup_policy
        or config.compression_type != "producer"
    )


def is_short(raw: Readable, config: LogConfig) -> bool:
    """Whether looking into it takes microseconds, so that it may be done on the loop."""
    return (
        len(raw) <= INLINE_BYTES_MAX
        and config.compression_type in ("producer", "uncompressed")
        and compression_of(raw) == Compression.NONE
    )


def inspect(raw: memoryview, config: LogConfig, decompressed_bytes_max: int) -> memoryview:
    """The batch as it is to be appended. Raises RunnelError for records that must not be.

    The CRC is checked first: one made anew by recompression would vouch for damaged records.
    """
    header = BatchHeader.read(raw, 0)
    if not is_good(header, raw, config.max_message_bytes) and not is_good_in_transaction(
        header, raw, config.max_message_bytes
    ):  # whether there is a transaction is for the append to say
        raise refusal(header, raw, config)
    native.validate(
        raw,
        require_keys="compact" in config.cleanup_policy,
        max_decompressed_bytes=decompressed_bytes_max,
    )
    wanted = _WANTED.get(config.compression_type)
    if wanted is None or wanted == header.compression:
        return raw
    batch = native.recompress(
        raw, wanted, _level(config, wanted), max_decompressed_bytes=decompressed_bytes_max
    )
    return memoryview(batch)


def _level(config: LogConfig, codec: Compression) -> int | None:
    match codec:
        case Compression.GZIP:
            return config.compression_gzip_level
        case Compression.LZ4:
            return config.compression_lz4_level
        case Compression.ZSTD:
            return config.compression_zstd_level
    return None
