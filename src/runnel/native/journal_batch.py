"""What a coordinator writes: compiled where that was built, its Python twin elsewhere.

A batch of a few keys and values, all of one time, without headers; key and value of a committed
offset, which are most of what is ever written.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.native import _journal_py as _found
else:
    try:
        from runnel.native import _journal as _found
    except ImportError:
        from runnel.native import _journal_py as _found

COMPILED: Final = _found.__name__ == "runnel.native._journal"
encode_pairs = _found.encode_pairs
offset_key = _found.offset_key
offset_value = _found.offset_value
