"""What the parts of the script may cost: one set of counts per machine key, kept in a file.

A baseline changes only when somebody says so, hence many small rises fail like one large one.
Where there is none yet, the first count becomes it.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

TOLERANCE = 0.03
ACCEPT = "make ratchet ARGS=--accept"


class Row(NamedTuple):
    name: str
    instructions: int
    baseline: int | None

    @property
    def change(self) -> float:
        return self.instructions / self.baseline - 1 if self.baseline else 0.0


def settle(
    path: Path,
    key: str,
    counts: Mapping[str, int],
    *,
    accept: bool,
    say: Callable[[str], None],
) -> int:
    """Compare with the file, tell, and write what is new or accepted. The exit status."""
    known = _read(path)
    baseline = known.get(key, {})
    rows = [Row(name, count, baseline.get(name)) for name, count in counts.items()]
    say(table(rows))
    say(f"on {key}")
    if accept:
        _write(path, {**known, key: dict(counts)})
        say(f"ACCEPTED: these counts are the baseline in {path.name} now; commit it")
        return 0
    missing = sum(row.baseline is None for row in rows)
    if missing:
        _write(path, {**known, key: {row.name: row.baseline or row.instructions for row in rows}})
        say(
            f"NO BASELINE for {missing} of {len(rows)} parts on this machine:"
            f" what they cost now is RECORDED in {path.name}; commit it"
        )
    for row in rows:
        if row.change < -TOLERANCE:
            say(f"FELL: {_told(row)}; lower the baseline with `{ACCEPT}`")
    risen = [row for row in rows if row.change > TOLERANCE]
    for row in risen:
        say(f"ROSE: {_told(row)}; {TOLERANCE:.0%} are allowed")
    if risen:
        say(f"Find what made it slower; if it is worth its price, accept it with `{ACCEPT}`")
    return 1 if risen else 0


def _told(row: Row) -> str:
    return f"{row.name!r} by {abs(row.change):.1%}, from {row.baseline:,} to {row.instructions:,}"


def table(rows: list[Row]) -> str:
    width = max(len(row.name) for row in rows)
    lines = [f"{'instructions per request':{width}}  {'now':>11}  {'baseline':>11}  {'change':>7}"]
    for row in rows:
        baseline = "none" if row.baseline is None else f"{row.baseline:,}"
        change = "" if row.baseline is None else f"{row.change:+.2%}"
        lines.append(f"{row.name:{width}}  {row.instructions:>11,}  {baseline:>11}  {change:>7}")
    return "\n".join(lines)


def _read(path: Path) -> dict[str, dict[str, int]]:
    if not path.exists():
        return {}
    known: dict[str, dict[str, int]] = json.loads(path.read_text())
    return known


def _write(path: Path, known: Mapping[str, Mapping[str, int]]) -> None:
    """Keys sorted, parts in the order of the script, so that a change shows as a line."""
    path.write_text(json.dumps({key: known[key] for key in sorted(known)}, indent=2) + "\n")
