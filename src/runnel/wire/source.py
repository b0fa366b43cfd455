"""Python source under construction: lines, indentation, names that never clash, constants.

Consecutive values of fixed size are gathered in a run and leave in one `struct` call.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runnel.wire.schema import FRESH, Field


class Source:
    def __init__(self, version: int, flexible: bool, namespace: dict[str, Any]) -> None:
        self.version = version
        self.flexible = flexible
        self.namespace = namespace  # what the code sees as globals
        self.numbers: list[str] = []  # what C may hold in a register
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0
        self._known: dict[tuple[str, int], str] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        held = len(self._lines)
        yield
        if len(self._lines) == held:
            self.line("pass")
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def number(self, stem: str) -> str:
        """A name for a length or a count, which never leaves the code."""
        self.numbers.append(self.fresh(stem))
        return self.numbers[-1]

    def holder(self, stem: str, cls: object) -> str:
        """A name for a value; `cls` is its class if it is a struct."""
        return self.fresh(stem)

    def constant(self, stem: str, value: object) -> str:
        """A global name for a value; the same object gets the same name."""
        key = (stem, id(value))
        if key not in self._known:
            self._known[key] = name = self.fresh(stem)
            self.namespace[name] = value
        return self._known[key]

    def packer(self, stem: str, codes: str) -> tuple[str, int]:
        """A global name for `unpack_from` or `pack` of these codes, and their size."""
        name = f"{stem}_{codes.replace('?', 'o')}"  # a name may not hold a question mark
        packer = struct.Struct(">" + codes)
        self.namespace[name] = getattr(packer, stem)
        return name, packer.size

    def default(self, field: Field) -> str:
        """An expression for the default of a field, made anew if it can be changed."""
        if field.default_factory is list:
            return "[]"
        if field.default_factory is not None:
            return self.constant("make", field.default_factory) + "()"
        assert field.default is not FRESH, f"{field.name} is declared without a default"
        if field.default is None or isinstance(field.default, bool | int | str | float):
            return repr(field.default)
        return self.constant("default", field.default)

    def text(self) -> str:
        assert self._depth == 0
        return "\n".join(self._lines) + "\n"
