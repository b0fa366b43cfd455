"""Reads a Dockerfile: its stages, and each instruction with its options. Strict on purpose.

What it does not know it refuses, so that nothing in the file is silently left unchecked or unrun.
"""

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

KNOWN = {
    *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "HEALTHCHECK", "LABEL", "RUN"),
    *("STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}


class Instruction(NamedTuple):
    name: str
    options: dict[str, str]  # --from=build
    text: str

    @property
    def words(self) -> list[str]:
        """Of an exec form (a JSON list), or of a line."""
        if self.text.startswith("["):
            words: list[str] = json.loads(self.text)
            return words
        return shlex.split(self.text)

    @property
    def pairs(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.words)


class Stage(NamedTuple):
    image: str
    name: str
    instructions: list[Instruction]

    def all(self, name: str) -> list[Instruction]:
        return [each for each in self.instructions if each.name == name]

    def last(self, name: str) -> Instruction:
        return self.all(name)[-1]


def read(path: Path) -> list[Stage]:
    """Raises ValueError for what it does not know."""
    stages: list[Stage] = []
    for line in _logical_lines(path.read_text()):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found = re.fullmatch(r"(\S+)(?: AS (\w+))?", rest.strip())
            if found is None:
                raise ValueError(f"FROM {rest}")
            stages.append(Stage(found[1], found[2] or "", []))
        elif name not in KNOWN or not stages:
            raise ValueError(f"not understood: {line[:80]}")
        else:
            stages[-1].instructions.append(_instruction(name, rest.strip()))
    return stages


def _instruction(name: str, rest: str) -> Instruction:
    options: dict[str, str] = {}
    while found := re.match(r"--([\w-]+)=(\S+)\s+", rest):
        options[found[1]] = found[2]
        rest = rest[found.end() :]
    return Instruction(name, options, rest)


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or not (line.strip() or pending):
            continue
        pending += line.strip() if not pending else " " + line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1].rstrip()
        else:
            lines.append(pending)
            pending = ""
    return lines
