"""Numbers as a person reads them; programs take the JSON."""

import math


def size_text(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def count_text(count: float) -> str:
    """Five characters or so: 999, 12.3k, 4.56M."""
    if not math.isfinite(count):
        return str(count)
    for unit in ("", "k", "M", "G"):
        if abs(count) < 999.5:
            return _three_digits(count) + unit
        count /= 1000
    return _three_digits(count) + "T"


def _three_digits(number: float) -> str:
    if number == int(number) and abs(number) < 1000:
        return f"{number:.0f}"
    size = abs(number)
    return f"{number:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"


def seconds_text(seconds: float) -> str:
    """A time that something took: 12 us, 3.4 ms, 1.2 s."""
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if abs(seconds) * scale < 999.5:
            return f"{_three_digits(seconds * scale)} {unit}"
    return f"{_three_digits(seconds)} s" if abs(seconds) < 120 else duration_text(seconds)


def duration_text(seconds: float) -> str:
    """How long something has been so: the two largest units of it."""
    whole = int(seconds)
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        if whole >= size or (unit == "s" and not parts):
            parts.append(f"{whole // size} {unit}")
            whole %= size
        elif parts:
            break
    return " ".join(parts[:2])
