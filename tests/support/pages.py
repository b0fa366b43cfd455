"""The pages of docs/languages: what stands on them is what is built and run, nothing else.

Everything below a heading of the second level is one project. A block with a title is a file of
that name; a `console` block is what a reader types, compared with what it shows (see
`examples.py`). Both are taken in the order of the page. A `console` block titled `Install` fetches
and builds what others wrote: it is run again only when it, or a file above it, has changed. Any
other block is a mistake, because nothing would run it.

Pages say `localhost:9092`; that is all that is replaced, by the address of the broker of the test.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.examples import ADDRESS, Example, agrees, commands_of

PAGES = Path(__file__).resolve().parents[2] / "docs/languages"
INSTALL = "Install"
INSTALL_TIMEOUT_S = 1_800.0  # librdkafka is compiled on whatever machine this is
TIMEOUT_S = 300.0
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TITLE = re.compile(r'^ title="([^"]+)"$')


class PageError(Exception):
    """A block that no test would run, or one that is not what it says."""


class File(NamedTuple):
    name: str
    text: str


class Commands(NamedTuple):
    examples: list[Example]
    is_install: bool


class Project(NamedTuple):
    page: Path
    heading: str
    steps: list[File | Commands]

    @property
    def name(self) -> str:
        """For folders and test ids: `go-franz-go`."""
        heading = re.sub(r"[^a-z0-9]+", "-", self.heading.lower()).strip("-")
        return f"{self.page.stem}-{heading}"


def projects_of(page: Path) -> list[Project]:
    """Sections without any block are prose."""
    text = page.read_text()
    starts = [match.start() for match in _HEADING.finditer(text)] + [len(text)]
    if _BLOCK.search(text[: starts[0]]):
        raise PageError(f"{page.name}: a block before the first heading belongs to no project")
    found = []
    for start, end in pairwise(starts):
        heading = _HEADING.match(text, start)
        assert heading is not None
        first_line = text.count("\n", 0, start)
        steps = [_step(page, block, first_line) for block in _BLOCK.finditer(text[start:end])]
        if steps:
            found.append(Project(page, heading[1], steps))
    return found


def _step(page: Path, block: re.Match[str], lines_before: int) -> File | Commands:
    language, marks, body = block[1], block[2], block[3]
    line = lines_before + block.string.count("\n", 0, block.start(3)) + 1
    title = _TITLE.match(marks)
    if marks.strip() and title is None:
        raise PageError(f'{page.name}:{line - 1}: {marks.strip()!r} is not title="..."')
    if language == "console":
        if title is not None and title[1] != INSTALL:
            raise PageError(f'{page.name}:{line - 1}: commands have no title but "{INSTALL}"')
        return Commands(list(commands_of(body, line)), is_install=title is not None)
    if title is None:
        raise PageError(f"{page.name}:{line - 1}: {language} without a title: nothing runs it")
    return File(title[1], body)


def run_project(
    project: Project, folder: Path, address: str, environment: Mapping[str, str]
) -> None:
    """Raises PageError with the first command that did not do what the page shows."""
    folder.mkdir(parents=True, exist_ok=True)
    above = hashlib.sha256()
    for step in project.steps:
        if isinstance(step, File):
            above.update(step.text.encode())
            _write(folder / step.name, step.text.replace(ADDRESS, address))
        elif step.is_install:
            above.update(repr([example.command for example in step.examples]).encode())
            _install(project, step, folder, above.hexdigest(), environment)
        else:
            for example in step.examples:
                _run(project, example, folder, address, environment, TIMEOUT_S)


def _install(
    project: Project, step: Commands, folder: Path, digest: str, environment: Mapping[str, str]
) -> None:
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for example in step.examples:
        _run(project, example, folder, ADDRESS, environment, INSTALL_TIMEOUT_S)
    stamp.write_text(digest)


def _write(path: Path, text: str) -> None:
    """Only if it differs: build tools go by the time of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _run(
    project: Project,
    example: Example,
    folder: Path,
    address: str,
    environment: Mapping[str, str],
    timeout_s: float,
) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", example.command.replace(ADDRESS, address)],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    printed = (_COLOUR.sub("", text) for text in (done.stdout, done.stderr))
    out, err = (text.replace(address, ADDRESS) for text in printed)
    shown = example.output
    # A page may leave out what goes to standard error.
    if done.returncode != 0 or not (agrees(shown, out) or agrees(shown, out + err)):
        raise PageError(
            f"{project.page.name}:{example.line}: {example.command}\n"
            f"ended with {done.returncode}:\n{out[-3000:]}{err[-3000:]}"
        )
