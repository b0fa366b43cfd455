"""Where in a topic to begin or end, as people write it: a place, an offset, or a time.

beginning, earliest     the oldest record that is kept
latest, end             what comes from now on
1234                    that offset in every partition
-20                     the last 20 of every partition
-5m                     as long ago: s, m, h or d
2026-01-31T12:00        a time; of this machine's zone unless it ends in Z or +02:00
@1767225600000          a time in milliseconds, as records carry it
"""

import re
from datetime import datetime
from typing import Final, NamedTuple

from runnel.cli.output import CommandError
from runnel.client.admin import EARLIEST, LATEST, list_offsets
from runnel.client.cluster import Cluster

WAYS: Final = "'beginning', 'latest', an offset, -N records, '-5m' or '2026-01-31T12:00'"
_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO: Final = re.compile(r"-(\d{1,12}(?:\.\d{1,6})?)([smhd])")
_LENGTH: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([smhd])")
_ISO_LENGTH: Final = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,3})?)S)?)?"
)


class Place(NamedTuple):
    """One of the three: an offset (negative: so many before the end), a time, or an edge."""

    offset: int | None = None
    time_ms: int | None = None
    edge: int | None = None  # EARLIEST or LATEST


def place_of(option: str, text: str, now_ms: int) -> Place:
    """Raises CommandError."""
    text = text.strip()
    if text in ("beginning", "earliest", "start"):
        return Place(edge=EARLIEST)
    if text in ("latest", "end"):
        return Place(edge=LATEST)
    if re.fullmatch(r"-?\d{1,18}", text):
        return Place(offset=int(text))
    time_ms = time_of(text, now_ms)
    if time_ms is None:
        raise CommandError(f"{option}: {text!r} is no place in a topic; write {WAYS}.")
    return place_at(time_ms)


def place_at(time_ms: int) -> Place:
    """No record is older than 1970, and below it -1 and -2 would ask for the end and the start."""
    return Place(time_ms=max(0, time_ms))


def time_of(text: str, now_ms: int) -> int | None:
    """Milliseconds since 1970, negative before it, or None for what is no time."""
    if ago := _AGO.fullmatch(text):
        return now_ms - int(float(ago[1]) * _UNIT_MS[ago[2]])
    if re.fullmatch(r"@\d{1,15}", text):
        return int(text[1:])
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def duration_ms(option: str, text: str) -> int:
    """`90s`, `15m`, `1.5h`, `2d`, or Kafka's `PT1H30M`. Raises CommandError."""
    text = text.strip()
    if plain := _LENGTH.fullmatch(text):
        return int(float(plain[1]) * _UNIT_MS[plain[2]])
    iso = _ISO_LENGTH.fullmatch(text.upper())
    if iso is None or not any(iso.groups()):
        raise CommandError(f"{option}: {text!r} is no duration; write 90s, 15m, 2h or 7d.")
    return sum(
        int(float(count or 0) * _UNIT_MS[unit])
        for count, unit in zip(iso.groups(), "dhms", strict=True)
    )


def offsets_at(cluster: Cluster, topic: str, place: Place, partitions: list[int]) -> dict[int, int]:
    """The offset of that place in each partition, never before its start; after the newest record
    of a time is the end. An offset beyond the end is left as it is: the broker refuses it.
    """
    ends = list_offsets(cluster, topic, dict.fromkeys(partitions, LATEST))
    if place.edge == LATEST:
        return ends
    if place.time_ms is not None:
        found = list_offsets(cluster, topic, dict.fromkeys(partitions, place.time_ms))
        return {at: ends[at] if offset < 0 else offset for at, offset in found.items()}
    starts = list_offsets(cluster, topic, dict.fromkeys(partitions, EARLIEST))
    if place.offset is None:
        return starts
    if place.offset >= 0:
        return {at: max(starts[at], place.offset) for at in partitions}
    return {at: max(starts[at], ends[at] + place.offset) for at in partitions}
