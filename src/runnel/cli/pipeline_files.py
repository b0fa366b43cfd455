"""Pipelines by the name or file that a user gives, and their state folders."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.cli.output import EXIT_REFUSED, CommandError, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runnel.pipelines.home import Home
    from runnel.pipelines.kind import Problem
    from runnel.pipelines.spec import Spec

FOLDER: Final = Path("pipelines")
SUFFIXES: Final = (".yml", ".yaml")


def find(given: str) -> Path:
    """The file. Raises CommandError."""
    path = Path(given)
    if path.suffix in SUFFIXES or "/" in given:
        if not path.is_file():
            raise CommandError(f"there is no file {given}; 'runnel pipeline list' shows what is.")
        return path
    for suffix in SUFFIXES:
        for folder in (FOLDER, Path()):
            if (found := folder / f"{given}{suffix}").is_file():
                return found
    from runnel.config.registry import suggestion

    names = [file.stem for file in all_files()]
    hint = suggestion(given, names).removeprefix("; ").capitalize()
    raise CommandError(
        f"there is no pipelines/{given}.yml here. "
        + (hint or f"'runnel pipeline init {given}' makes one, a path to a file will do as well.")
    )


def all_files() -> list[Path]:
    found = (file for file in FOLDER.glob("*") if file.suffix in SUFFIXES)
    return sorted(file for file in found if not file.is_dir())


def load(given: str, every: str | None = None) -> "Spec":
    """Raises CommandError; all mistakes in the file are said."""
    from runnel.pipelines.spec import every_of

    try:
        spec = read(find(given))
    except FileMistakeError as error:
        raise error.raised() from None
    if every is None:
        return spec
    try:
        return replace(spec, every=every_of(every))
    except ValueError as error:
        raise CommandError(f"--every: {error}.") from None


def read(file: Path) -> "Spec":
    """Raises FileMistakeError, and CommandError for a file that cannot be read."""
    from runnel.pipelines.spec import SpecError
    from runnel.pipelines.spec import load as load_spec

    try:
        return load_spec(file)
    except SpecError as error:
        raise FileMistakeError(error.lines, error.name) from None
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None


def home_of(spec: "Spec | Light", state_dir: Path | None) -> "Home":
    from runnel.pipelines.home import FOLDER as STATE
    from runnel.pipelines.home import Home

    return Home((state_dir or spec.root / STATE) / spec.name)


def refuse_mistakes(spec: "Spec", problems: "Sequence[Problem]") -> None:
    """Raises CommandError, with the line of each."""
    if problems:
        raise FileMistakeError(lines_of(spec, problems)).raised()


def lines_of(spec: "Spec", problems: "Sequence[Problem]") -> list[str]:
    """`file:line:column: message`, in the file's order."""
    from runnel.pipelines.document import Fault
    from runnel.pipelines.spec import SpecError, shown

    faults = [Fault(spec.mark(each.where), spec.hidden(each.message)) for each in problems]
    return SpecError(shown(spec.file), faults).lines


class Light(NamedTuple):
    """What a list shows of a file; its mistakes are only counted."""

    name: str
    file: Path
    kind: str = ""
    source: str = ""
    to: str = ""
    every: str = ""
    mistakes: int = 0

    @property
    def root(self) -> Path:
        from runnel.pipelines.spec import root_of

        return root_of(self.file)


def light(file: Path) -> Light:
    """Raises CommandError for a file that cannot be read."""
    try:
        spec = read(file)
    except FileMistakeError as error:
        return Light(error.name or file.stem, file, mistakes=len(error.lines))
    source = ", ".join(spec.source.topics) or spec.source.pattern or spec.source.table
    to = spec.to.topic or spec.to.table
    if to.startswith("/"):
        to = os.path.relpath(to)
    return Light(spec.name, file, spec.kind, source, to, str(spec.every).removeprefix("every "))


class FileMistakeError(CommandError):
    """Mistakes with their places; `raised` says them all. `name` is the pipeline's, if known."""

    def __init__(self, lines: "Sequence[str]", name: str = "") -> None:
        self.name = name
        text = lines[0] if len(lines) == 1 else f"{len(lines)} problems; nothing was started."
        super().__init__(text, EXIT_REFUSED)
        self.lines = list(lines)

    def raised(self) -> "FileMistakeError":
        if len(self.lines) > 1:
            for line in self.lines:
                note(line)
        return self


def is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", text) is not None
