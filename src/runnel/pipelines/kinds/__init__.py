"""Kinds of pipelines by name, each imported only when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.pipelines.kind import Kind

KINDS: Final = {
    "table": "runnel.pipelines.kinds.table:KIND",
}


def find(name: str) -> "Kind":
    """Raises KeyError for a name that is not in `KINDS`."""
    module, _, attribute = KINDS[name].partition(":")
    found: Kind = getattr(import_module(module), attribute)
    return found
