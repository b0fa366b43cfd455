"""Declared options of a kind: types and defaults, and the values that a file gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from runnel.pipelines.units import size_bytes, span_ms

TYPES: Final = ("text", "texts", "whole", "number", "flag", "span", "size", "choice", "group")
Value = str | int | float | bool | tuple[str, ...] | Mapping[str, "Value"] | None
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Option:
    """One name below `options:`.

    `type` says what a file may write and what `Options` gives: `text`, `texts` (a list, or names
    with commas between), `whole`, `number`, `flag`, `span` (`10 minutes`; in ms), `size` (`128MB`;
    in bytes), `choice` (one of `choices`), `group` (a mapping with options `inside` of its own).
    """

    name: str
    type: str
    help: str
    default: Value = None
    choices: tuple[str, ...] = ()
    required: bool = False
    least: float | None = None  # of whole, number, span and size
    most: float | None = None
    inside: "tuple[Option, ...]" = ()

    def __post_init__(self) -> None:
        assert self.type in TYPES, self.type
        assert bool(self.choices) == (self.type == "choice"), self.name

    def read(self, text: str) -> Value:
        """Of one piece of text. Raises ValueError with what should stand there instead."""
        if self.type in ("whole", "number", "span", "size"):
            return self._bounded(_number(self.type, text), text)
        if self.type == "flag":
            if text.lower() not in _FLAGS:
                raise ValueError(f"{text!r} is not true or false")
            return _FLAGS[text.lower()]
        if self.type == "texts":
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if self.type == "choice" and text not in self.choices:
            raise ValueError(f"{text!r} is not one of {', '.join(self.choices)}")
        return text

    def _bounded(self, number: float, text: str) -> float:
        units = {"span": "ms", "size": "bytes"}.get(self.type, "")
        if self.least is not None and number < self.least:
            raise ValueError(f"{text} is less than {self.least:g} {units}".rstrip())
        if self.most is not None and number > self.most:
            raise ValueError(f"{text} is more than {self.most:g} {units}".rstrip())
        return number


def _number(type_: str, text: str) -> float:
    if type_ == "span":
        return span_ms(text)
    if type_ == "size":
        return size_bytes(text)
    try:
        return int(text.replace("_", "")) if type_ == "whole" else float(text)
    except ValueError:
        what = "a whole number" if type_ == "whole" else "a number"
        raise ValueError(f"{text!r} is not {what}") from None


@dataclass(frozen=True)
class Options:
    """The values of a kind's options: what the file says, else their defaults."""

    values: Mapping[str, Value] = field(default_factory=dict)
    given: frozenset[str] = frozenset()  # those that the file names

    def __contains__(self, name: str) -> bool:
        """Whether there is a value at all."""
        return self.values.get(name) is not None

    def text(self, name: str) -> str:
        """Of `text` and `choice`; empty where there is none."""
        found = self.values[name]
        return "" if found is None else str(found)

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.values[name]
        return found if isinstance(found, tuple) else ()

    def whole(self, name: str) -> int:
        """Of `whole`, `span` (ms) and `size` (bytes); 0 where there is none."""
        found = self.values[name]
        return int(found) if isinstance(found, int | float) else 0

    def number(self, name: str) -> float:
        found = self.values[name]
        return float(found) if isinstance(found, int | float) else 0.0

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def group(self, name: str) -> "Options":
        found = self.values[name]
        return Options(found if isinstance(found, Mapping) else {})


def defaults(declared: tuple[Option, ...]) -> dict[str, Value]:
    return {
        option.name: defaults(option.inside) if option.type == "group" else option.default
        for option in declared
    }
