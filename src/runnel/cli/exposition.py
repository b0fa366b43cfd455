"""Prometheus text, read: what a broker's exporter serves, as numbers by name and labels.

A broker with 10,000 partitions serves a hundred thousand lines, and `runnel top` reads them every
other second. So labels stay text, which is equal from one scrape to the next, and are taken apart
only where they are shown; a reader that names what it wants pays for nothing else.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

SUFFIXES: Final = ("_bucket", "_sum", "_count")  # of a histogram; a summary has the last two
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,\s*|$)')
_ESCAPED: Final = re.compile(r"\\(.)")

Series = Mapping[str, float]  # label text -> value


class ExpositionError(ValueError):
    """It is no Prometheus text. The message says which line."""


class Scrape:
    """What one answer held. `series` is by sample name, so a histogram has three entries."""

    __slots__ = ("helps", "kinds", "series")

    def __init__(self) -> None:
        self.series: dict[str, dict[str, float]] = {}
        self.kinds: dict[str, str] = {}  # family -> counter, gauge, histogram..., in their order
        self.helps: dict[str, str] = {}

    def of(self, name: str) -> Series:
        return self.series.get(name, {})

    def value(self, name: str, label_text: str = "") -> float | None:
        return self.of(name).get(label_text)

    def total(self, name: str) -> float:
        """The sum over all labels; 0 if there are none."""
        return sum(self.of(name).values())

    def samples_of(self, family: str) -> list[str]:
        """The sample names that a family has here."""
        names = [family, *(family + suffix for suffix in SUFFIXES)]
        return [name for name in names if name in self.series]


def parse(text: str, wanted: Collection[str] | None = None) -> Scrape:
    """Raises ExpositionError. `wanted` are sample names; all others are left out."""
    scrape = Scrape()
    series = scrape.series
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.isspace():
            continue
        if line[0] == "#":
            _describe(scrape, line)
            continue
        opened = line.find("{")
        if opened < 0:
            name, _, rest = line.partition(" ")
            label_text = ""
        else:
            name = line[:opened]
            closed = line.rfind("}")
            label_text, rest = line[opened + 1 : closed], line[closed + 1 :]
        if wanted is not None and name not in wanted:
            continue
        try:
            value = float(rest.split(None, 1)[0])  # what may follow is a timestamp
        except (IndexError, ValueError):
            raise ExpositionError(f"line {number} is no sample: {line[:100]!r}") from None
        series.setdefault(name, {})[label_text] = value
    return scrape


def _describe(scrape: Scrape, line: str) -> None:
    words = line.split(None, 3)
    if len(words) < 3 or words[0] != "#":
        return
    text = words[3] if len(words) > 3 else ""
    if words[1] == "TYPE":
        scrape.kinds[words[2]] = text
    elif words[1] == "HELP":
        scrape.helps[words[2]] = _unescaped(text)


@lru_cache(maxsize=65_536)
def _pairs(label_text: str) -> tuple[tuple[str, str], ...]:
    found = tuple((match[1], _unescaped(match[2])) for match in _LABEL.finditer(label_text))
    if label_text and not found:
        raise ExpositionError(f"these are no labels: {label_text[:100]!r}")
    return found


def labels_of(label_text: str) -> dict[str, str]:
    return dict(_pairs(label_text))


def without(label_text: str, name: str) -> str:
    """The label text without one label: what the buckets of one histogram have in common."""
    kept = [f"{match[1]}={match[2]}" for match in _RAW.finditer(label_text) if match[1] != name]
    return ",".join(kept)


_RAW: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)=("(?:[^"\\]|\\.)*")')


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], text)
