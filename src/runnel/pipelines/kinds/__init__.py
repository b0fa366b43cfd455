"""Kinds of pipelines by name, each imported only when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.pipelines.kind import Kind

KINDS: Final = {
    "cdc": "runnel.pipelines.kinds.cdc:KIND",
    "dedup": "runnel.pipelines.kinds.dedup:KIND",
    "lag-history": "runnel.pipelines.kinds.lag_history:KIND",
    "log-index": "runnel.pipelines.kinds.log_index:KIND",
    "replay": "runnel.pipelines.kinds.replay:KIND",
    "sessions": "runnel.pipelines.kinds.sessions:KIND",
    "storage": "runnel.pipelines.kinds.storage:KIND",
    "table": "runnel.pipelines.kinds.table:KIND",
    "traffic": "runnel.pipelines.kinds.traffic:KIND",
}


def find(name: str) -> "Kind":
    """Raises KeyError for a name that is not in `KINDS`."""
    module, _, attribute = KINDS[name].partition(":")
    found: Kind = getattr(import_module(module), attribute)
    return found
