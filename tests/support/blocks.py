"""Fenced blocks of documents: each is run by somebody, or it is no code.

| block | what becomes of it |
|---|---|
| `console` | its commands are run and compared with what is shown (`examples.py`) |
| `python` | a program, run by itself |
| any with a title | a file of that name; a command below it has to use it |
| `text`, or no language | shown only; commands do not belong into it |
| any, after `<!-- run by make TARGET -->` | left to that target, which has to exist |

Anything else is a mistake, because nothing would run it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- run by make (?P<target>[\w-]+)[^\n]*-->\n+)?"
    r"^(?P<indent> *)```(?P<language>[\w+-]*)(?P<marks>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'^ title="([\w./-]+)"$')


class BlockError(Exception):
    """A block that nobody runs."""


class Block(NamedTuple):
    line: int  # in the document, of the first line of its text
    language: str
    title: str | None
    run_by: str | None  # a target of the Makefile
    body: str

    @property
    def is_shown_only(self) -> bool:
        return self.language in ("", "text")


def blocks_of(document: Path) -> Iterator[Block]:
    text = document.read_text()
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("body")) + 1
        marks = found["marks"].rstrip()
        title = _TITLE.match(marks)
        if marks and title is None:
            raise BlockError(f'{document.name}:{line - 1}: {marks.strip()!r} is not title="FILE"')
        body = re.sub(rf"^{found['indent']}", "", found["body"], flags=re.MULTILINE)
        block = Block(line, found["language"], title and title[1], found["target"], body)
        _check(document, block)
        yield block


def _check(document: Path, block: Block) -> None:
    place = f"{document.name}:{block.line - 1}"
    if block.run_by is not None:
        if not re.search(rf"^{block.run_by}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
            raise BlockError(f"{place}: there is no make {block.run_by}")
    elif block.is_shown_only:
        if re.search(r"^ *\$ ", block.body, re.MULTILINE):
            raise BlockError(f"{place}: commands belong into a console block, where they are run")
    elif block.language == "console" and not re.search(r"^\$ ", block.body, re.MULTILINE):
        raise BlockError(f"{place}: no line begins with '$ ': it has no command to run")
    elif block.title is None and block.language not in ("console", "python"):
        raise BlockError(
            f"{place}: nothing runs this {block.language}: give it a title and a command that uses"
            " the file, or say who runs it: <!-- run by make TARGET -->"
        )
