"""What was compiled of the codecs, if anything: `tools/hot_codecs.py` says how.

`bases` are C structs by module and name of the message class that inherits from them; `adopt`
tells the compiled code of that class and of its shared defaults. `reads` and `writes` are functions
by name and version of a message, as `compiler.Codec` describes them. `text_at` is for headers,
which have no codec.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from runnel.wire.primitives import refuse_size

try:
    from runnel.wire import _hot as _compiled  # type: ignore[attr-defined]  # only in a wheel
except ImportError:
    _compiled = None

COMPILED: Final = _compiled is not None
bases: Final[Mapping[tuple[str, str], type[Any]]] = _compiled.bases if _compiled else {}
reads: Final[Mapping[tuple[str, int], Callable[..., Any]]] = _compiled.reads if _compiled else {}
writes: Final[Mapping[tuple[str, int], Callable[..., Any]]] = _compiled.writes if _compiled else {}


def _text_at(buffer: memoryview, start: int, size: int) -> str:
    """Raises UnicodeDecodeError, or WireError if the buffer ends before it does."""
    if size > len(buffer) - start:
        refuse_size(size, len(buffer) - start)
    return str(buffer[start : start + size], "utf-8")


text_at: Final[Callable[[memoryview, int, int], str]] = _compiled.text_at if _compiled else _text_at


def adopt(made: type[Any], defaults: Mapping[str, object]) -> None:
    assert _compiled is not None, made
    _compiled.adopt(made, defaults)
