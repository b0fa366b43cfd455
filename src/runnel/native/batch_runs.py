"""Runs of batches, read in one go: compiled where that was built, its Python twin elsewhere.

For recovery, which looks at every batch of a log, and for the journals of coordinators, which have
millions of batches of one record each.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.native import _batch_runs_py as _found
else:
    try:
        from runnel.native import _batch_runs as _found
    except ImportError:
        from runnel.native import _batch_runs_py as _found

COMPILED: Final = _found.__name__ == "runnel.native._batch_runs"
read_run = _found.read_run
scan_run = _found.scan_run
