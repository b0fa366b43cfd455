"""Pipelines by the name or file that a user gives, and their state folders."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.cli.output import EXIT_REFUSED, CommandError

if TYPE_CHECKING:
    from runnel.pipelines.home import Home
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
    return sorted(file for file in FOLDER.glob("*") if file.suffix in SUFFIXES)


def load(given: str, every: str | None = None) -> "Spec":
    """Raises CommandError with every mistake in the file."""
    from runnel.pipelines.spec import SpecError, every_of
    from runnel.pipelines.spec import load as load_spec

    file = find(given)
    try:
        spec = load_spec(file)
    except SpecError as error:
        count = len(error.lines)
        more = f"\n{count} problems." if count > 1 else ""
        raise FileMistakeError(str(error) + more) from None
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    if every is None:
        return spec
    try:
        return replace(spec, every=every_of(every))
    except ValueError as error:
        raise CommandError(f"--every: {error}.") from None


def home_of(spec: "Spec", state_dir: Path | None) -> "Home":
    from runnel.pipelines.home import FOLDER as STATE
    from runnel.pipelines.home import Home

    return Home((state_dir or spec.root / STATE) / spec.name)


class FileMistakeError(CommandError):
    """Mistakes with their places, one to a line: printed as they are."""

    def __init__(self, text: str) -> None:
        super().__init__(text, EXIT_REFUSED)


def is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", text) is not None
