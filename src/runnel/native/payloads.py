"""Columns to record payloads: compiled where that was built, its Python twin elsewhere.

No Python object per record: a column goes in as the buffers that Arrow has made, and comes out as
the bytes of record batches (`native.encode.batch_of`), one batch at a time for each lane.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.native import _payloads_py as _found
else:
    try:
        from runnel.native import _payloads as _found
    except ImportError:
        from runnel.native import _payloads_py as _found

COMPILED: Final = _found.__name__ == "runnel.native._payloads"
Payloads = _found.Payloads
assign = _found.assign
