"""Spans of time, sizes and counts as people write them: `1 minute`, `90s`, `128MB`, `1g`."""

import re
from typing import Final

_NUMBER_AND_UNIT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]+)")
_SPANS_MS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400_000),
}
_SIZES_BYTES: Final = {
    "b": 1,
    **dict.fromkeys(("k", "kb", "kib"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mib"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gib"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tib"), 1 << 40),
}


def span_ms(text: str) -> int:
    """Raises ValueError for what is none; a number needs its unit."""
    return _scaled(text, _SPANS_MS, "a span of time such as 30s, 1 minute or 7 days")


def size_bytes(text: str) -> int:
    """Raises ValueError; a plain number is bytes."""
    if re.fullmatch(r"\d{1,15}", text.strip()):
        return int(text)
    return _scaled(text, _SIZES_BYTES, "a size such as 64k, 128MB or 1g")


def span_text(ms: int) -> str:
    """In the largest unit that gives a whole number."""
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000)):
        if ms and ms % size == 0:
            return f"{ms // size} {unit}{'s' if ms != size else ''}"
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms} ms"


def counted(count: int, one: str) -> str:
    """`1 topic`, `2,000 topics`."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _scaled(text: str, units: dict[str, int], example: str) -> int:
    found = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    if found is None or found[2] not in units:
        raise ValueError(f"{text!r} is not {example}")
    return int(float(found[1]) * units[found[2]])
