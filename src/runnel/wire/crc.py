"""CRC-32C in hardware, from the `crc32c` package, without the 45 ms that importing it takes.

Its `__init__` reads its own version with `importlib.metadata`, which brings in `email`, `zipfile`
and more. All we need is its extension module, so that is loaded by its file; where the package is
laid out in another way, the ordinary import serves.
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final, Protocol

from runnel.ports import Readable


class Crc32c(Protocol):
    def __call__(self, data: Readable, value: int = 0, /) -> int:
        """The checksum of `data`, going on from `value`."""


def _load() -> Crc32c:
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        spec = PathFinder.find_spec("_crc32c", list(package.submodule_search_locations))
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            extension: Crc32c = module.crc32c
            return extension
    from crc32c import crc32c as packaged

    return packaged


crc32c: Final = _load()
