"""What can be wrong with a record: numbers that both decoders find in the same order."""

from typing import Final

from runnel.errors import ErrorCode, RunnelError

TRUNCATED: Final = 1
VARINT: Final = 2
LENGTH: Final = 3
KEY: Final = 4
VALUE: Final = 5
HEADER_COUNT: Final = 6
HEADER: Final = 7
SURPLUS: Final = 8
OFFSET_DELTA: Final = 9
NOT_CONSECUTIVE: Final = 10
NO_KEY: Final = 11
TRAILING: Final = 12

_WHY: Final = {
    TRUNCATED: "the bytes end before the record does",
    VARINT: "a variable-length number has no end",
    LENGTH: "its length is negative or larger than what is left of the batch",
    KEY: "the key is longer than the record",
    VALUE: "the value is longer than the record",
    HEADER_COUNT: "it cannot hold as many headers as it says",
    HEADER: "a header key or value does not fit into the record",
    SURPLUS: "it is shorter than it says",
    OFFSET_DELTA: "its offset lies outside of the batch",
    NOT_CONSECUTIVE: "its offset does not follow the one before",
    NO_KEY: "a compacted topic cannot accept a record without a key",
    TRAILING: "bytes follow the last record",
}


def fault(number: int, index: int, base_offset: int) -> RunnelError:
    """`index` counts the records of the batch that starts at `base_offset`."""
    return RunnelError(
        ErrorCode.INVALID_RECORD,
        f"record {index} of the batch at offset {base_offset}: {_WHY[number]}",
    )


def damaged(base_offset: int) -> RunnelError:
    return RunnelError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {base_offset} is damaged")
