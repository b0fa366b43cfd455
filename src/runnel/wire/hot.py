"""What was compiled of the codecs, if anything: `tools/hot_codecs.py` says how.

`bases` are C structs by module and name of the message class that inherits from them; `adopt`
tells the compiled code of that class and of its shared defaults. `reads` and `writes` are functions
by name and version of a message, as `compiler.Codec` describes them. `request_header`, `new_reply`
and `stamp_reply` are for headers, `batch_header` and `stamp_batch` for batches, without a codec.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from runnel.errors import WireError
from runnel.ports import Readable
from runnel.wire.primitives import CLIENT_ID_BYTES_MAX, refuse_size

try:
    from runnel.wire import _hot as _compiled  # type: ignore[attr-defined]  # only in a wheel
except ImportError:
    _compiled = None

# Api key, version, correlation id, client id or "", and where the header goes on.
RequestHeader = tuple[int, int, int, str, int]
_unpack_request_header: Final = Struct(">hhih").unpack_from  # the last: bytes of the client id
_CLIENT_ID_AT: Final = 10
_pack_reply_header: Final = Struct(">ii").pack_into
_pack_int64_into: Final = Struct(">q").pack_into
_pack_int32_into: Final = Struct(">i").pack_into
_EPOCH_AT: Final = 12  # of a batch: offset and length come first
COMPILED: Final = _compiled is not None
bases: Final[Mapping[tuple[str, str], type[Any]]] = _compiled.bases if _compiled else {}
reads: Final[Mapping[tuple[str, int], Callable[..., Any]]] = _compiled.reads if _compiled else {}
writes: Final[Mapping[tuple[str, int], Callable[..., Any]]] = _compiled.writes if _compiled else {}


def _request_header(frame: memoryview) -> RequestHeader:
    if len(frame) < _CLIENT_ID_AT:
        refuse_size(_CLIENT_ID_AT, len(frame))
    key, version, correlation_id, size = _unpack_request_header(frame)
    if size <= 0:
        return key, version, correlation_id, "", _CLIENT_ID_AT
    if size > CLIENT_ID_BYTES_MAX:
        raise WireError(f"client id of {size} bytes")
    end = _CLIENT_ID_AT + size
    if end > len(frame):
        refuse_size(size, len(frame) - _CLIENT_ID_AT)
    try:
        return key, version, correlation_id, str(frame[_CLIENT_ID_AT:end], "utf-8"), end
    except UnicodeDecodeError:
        raise WireError("client id is not UTF-8") from None


def _stamp_reply(out: bytearray, size: int, correlation_id: int) -> None:
    """Of a reply that begins with 8 bytes for this."""
    _pack_reply_header(out, 0, size, correlation_id)


def _stamp_batch(
    batch: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    _pack_int64_into(batch, position, base_offset)
    _pack_int32_into(batch, position + _EPOCH_AT, leader_epoch)


BATCH_HEADER: Final = Struct(">qiibIhiqqqhii")
# In the order of the bytes.
batch_header: Final[Callable[[Readable, int], tuple[int, ...]]] = (
    _compiled.batch_header if _compiled else BATCH_HEADER.unpack_from
)
stamp_batch: Final[Callable[[bytearray | memoryview, int, int, int], None]] = (
    _compiled.stamp_batch if _compiled else _stamp_batch
)
new_reply: Final[Callable[[int], bytearray]] = _compiled.new_reply if _compiled else bytearray
stamp_reply: Final[Callable[[bytearray, int, int], None]] = (
    _compiled.stamp_reply if _compiled else _stamp_reply
)
# Raises WireError. Some versions have tagged fields after it.
request_header: Final[Callable[[memoryview], RequestHeader]] = (
    _compiled.request_header if _compiled else _request_header
)


def adopt(made: type[Any], defaults: Mapping[str, object]) -> None:
    assert _compiled is not None, made
    _compiled.adopt(made, defaults)
