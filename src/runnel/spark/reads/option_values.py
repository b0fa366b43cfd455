"""Values of options, which arrive as text: each error names option, value and an example."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from runnel.arrow.errors import OptionError
from runnel.config.registry import suggestion
from runnel.spark.kafka_settings import PREFIX
from runnel.spark.reads.option_table import BOTH, OPTIONS

# What Spark itself may put among the options of a read.
OF_SPARK: Final = frozenset({"paths", "serialization.format", "mergeschema"})
LONG_MAX: Final = (1 << 63) - 1
_NAMES: Final = {name.lower(): name for name in OPTIONS}
_TIME: Final = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?")
_TIME_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)i?b?")
_SIZE_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_Value = TypeVar("_Value")


class Values:
    """The options of one read, by name, whatever their case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): str(value) for name, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._options

    def refuse_unknown(self, kind: str, instead: Mapping[str, str]) -> None:
        """Raises OptionError for a name that is not in the table, or is of the other kind of read.

        `instead` has the words for names that this kind of read does not take.
        """
        for name in self._options:
            if name in OF_SPARK or name.startswith(PREFIX):
                continue
            known = _NAMES.get(name)
            if known is None:
                hint = suggestion(name, _NAMES).removeprefix("; did you mean ").rstrip("?")
                nearest = f"; did you mean {_NAMES[hint]}?" if hint else ""
                raise OptionError(
                    f"unknown option {name}{nearest}"
                    if nearest
                    else f"unknown option {name}; docs/spark-options.md lists them all"
                )
            if OPTIONS[known].reads not in (BOTH, kind) and known in instead:
                raise OptionError(instead[known])

    def text(self, name: str, default: str = "") -> str:
        return self._options.get(name.lower(), default).strip()

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        text = self.text(name, default).lower()
        if text not in choices:
            raise _unfit(name, self.text(name), f"one of {', '.join(choices)}")
        return text

    def boolean(self, name: str, *, default: bool) -> bool:
        return self.choice(name, ("true", "false"), str(default).lower()) == "true"

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        found = self._read(name, "a whole number", int)
        if found is not None and not least <= found <= LONG_MAX:
            raise _unfit(name, self.text(name), f"a whole number of at least {least}")
        return default if found is None else found

    def count(self, name: str) -> int | None:
        """At least 1, or not given."""
        found = self._read(name, "a whole number", int)
        if found is not None and not 1 <= found <= LONG_MAX:
            raise OptionError(
                f"{name} must be positive: {self.text(name)} is not; such as"
                f" {OPTIONS[name].example}"
            )
        return found

    def time_ms(self, name: str) -> int | None:
        """`90s`, `15m`, `2h`; a plain number is milliseconds, as for Spark."""
        return self._read(name, "a time", _time_ms)

    def size_bytes(self, name: str) -> int | None:
        found = self._read(name, "a size in bytes", _size_bytes)
        if found == 0:
            raise _unfit(name, self.text(name), "a size in bytes")
        return found

    def _read(self, name: str, what: str, read: Callable[[str], _Value]) -> _Value | None:
        if name not in self:
            return None
        try:
            return read(self.text(name))
        except (ValueError, OverflowError):
            raise _unfit(name, self.text(name), what) from None


def _unfit(name: str, text: str, what: str) -> OptionError:
    example = OPTIONS[name].example
    return OptionError(f"{name}={text} is not {what}; write for example {name}={example}")


def _time_ms(text: str) -> int:
    match = _TIME.fullmatch(text.lower())
    if match is None:
        raise ValueError(text)
    return int(int(match[1]) * _TIME_MS[match[2] or "ms"])


def _size_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.lower())
    if match is None:
        raise ValueError(text)
    return int(match[1]) * _SIZE_BYTES[match[2]]
