"""The compiled decoder where it was built, its Python twin elsewhere: same names, same results."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.native import _records_py as _found
else:
    try:
        from runnel.native import _records as _found

        _ = _found.Columns.append_run  # which a binary of older sources lacks
    except (ImportError, AttributeError):
        from runnel.native import _records_py as _found

COMPILED: Final = _found.__name__ == "runnel.native._records"
Columns = _found.Columns
OffsetMap = _found.OffsetMap
find = _found.find
rebased = _found.rebased
scan = _found.scan
unwritten = _found.unwritten
