"""Write src/runnel/config/kafka_names.py from Kafka's own tables in tools/kafka-4.3.

Run it after the tables change; a unit test fails while the two disagree.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools/kafka-4.3/configs.md"
DYNAMIC = ROOT / "tools/kafka-4.3/dynamic-configs.md"
TARGET = ROOT / "src/runnel/config/kafka_names.py"

HEADER = '''"""Kafka 4.3.1's configuration names, made by tools/declare_configs.py; never edit."""

from runnel.config.definition import Definition

KAFKA_NAMES: tuple[Definition, ...] = (
'''

RANGE = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\](?: or (-?\d+))?$")


def bounds(text: str) -> dict[str, object]:
    """Kafka's printed validator as keyword arguments of a Definition."""
    if found := RANGE.fullmatch(text):
        names = ("minimum", "maximum", "besides")
        return {n: int(v) for n, v in zip(names, found.groups(), strict=True) if v is not None}
    any_case = text.startswith("(case insensitive) ")
    text = text.removeprefix("(case insensitive) ")
    if text.startswith("[") and text.endswith("]"):
        parts = [part.strip() for part in text[1:-1].split(",")]
        choices = tuple(part for part in parts if not part.startswith("by_duration"))
        more = {"any_case": any_case, "by_duration": len(choices) < len(parts)}
        return {"choices": choices} | {key: True for key, is_set in more.items() if is_set}
    return {"not_empty": True} if text in ("non-empty string", "non-empty list") else {}


def default(text: str) -> str | None:
    return {"null": None, "(required)": None, '""': ""}.get(text, text)


def rows() -> list[str]:
    lines = [line[2:] for line in DYNAMIC.read_text().splitlines() if line[:2] == "- "]
    modes = dict(line.split(": ") for line in lines)
    scope, found = "", []
    for line in TABLE.read_text().splitlines():
        if line.startswith("## "):
            scope = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0] == "name" or cells[0].startswith("---"):
            continue
        name, kind, value, limits = cells
        fields = [repr(scope), repr(name), repr(kind), repr(default(value))]
        fields += [f"{key}={limit!r}" for key, limit in bounds(limits).items()]
        update = modes.get(name, "read-only") if scope == "broker" else "cluster-wide"
        fields += [] if update == "read-only" else [f"update={update!r}"]
        found.append(f"    Definition({', '.join(fields)}),\n")
    return found


def declare() -> str:
    body = "".join(rows()).replace("'", '"')
    return f"# fmt: off\n# ruff: noqa: E501\n{HEADER}{body})\n"


if __name__ == "__main__":
    TARGET.write_text(declare())
    print(f"{TARGET.relative_to(ROOT)}: {len(rows())} names")
