"""`runnel pipeline list` and `status`: how pipelines fare, from any terminal."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runnel.cli.figures import count_text, duration_text
from runnel.cli.output import Cell, CommandError, note, show_fields, show_json, show_table
from runnel.cli.pipeline_files import Light, all_files, find, home_of, light

if TYPE_CHECKING:
    from runnel.pipelines.status import Status

WATCH_S = 1.0


def show_all(state_dir: Path | None, *, as_json: bool) -> None:
    """All of them: what is wrong with one is told, and hides no other."""
    rows = [_looked_at(file, state_dir) for file in all_files()]
    if as_json:
        show_json([_document(*row) for row in rows])
        return
    if not rows:
        note("There is no pipeline in ./pipelines; 'runnel pipeline init NAME' writes one.")
        return
    show_table(
        ["name", "kind", "from", "to", "every", "state", "last run", "rows", "lag"],
        [_row(*row) for row in rows],
    )
    for _, _, error in rows:
        if error:
            note(error)


def _looked_at(file: Path, state_dir: Path | None) -> "tuple[Light, Status | None, str]":
    """With what stands in the way of knowing more, if something does."""
    found = Light(file.stem, file)
    try:
        found = light(file)
        return found, status_of(found, state_dir), ""
    except CommandError as error:
        return found, None, str(error)


def show(given: str | None, state_dir: Path | None, *, watch: bool, as_json: bool) -> None:
    if given is None:
        if not watch:
            show_all(state_dir, as_json=as_json)
            return
        _again_and_again(lambda: show_all(state_dir, as_json=as_json), as_json=as_json)
    else:
        file = light(find(given))
        if watch:
            _again_and_again(lambda: _show(file, state_dir, as_json=as_json), as_json=as_json)
        else:
            _show(file, state_dir, as_json=as_json)


def _show(file: Light, state_dir: Path | None, *, as_json: bool) -> None:
    status = status_of(file, state_dir)
    if as_json:
        show_json(_document(file, status))
        return
    if status is None:
        show_fields({"pipeline": file.name, "state": "has never run"})
        return
    from runnel.cli.pipeline_view import fields_of

    show_fields(dict(fields_of(status)))
    if status.state == "crashed":
        note(f"Its process is gone; 'runnel pipeline run {file.name}' goes on where it was.")


def _again_and_again(look: Any, *, as_json: bool) -> None:  # noqa: ANN401  # a function of nothing
    """Until Ctrl-C."""
    is_screen = sys.stdout.isatty() and not as_json
    while True:
        if is_screen:
            sys.stdout.write("\x1b[H\x1b[2J")
        look()
        sys.stdout.flush()
        time.sleep(WATCH_S)


def status_of(file: Light, state_dir: Path | None) -> "Status | None":
    """None where it has never run. Raises CommandError."""
    from runnel.pipelines import status as statuses

    try:
        found = statuses.read(home_of(file, state_dir))
    except statuses.StatusError as error:
        raise CommandError(f"{error}.") from None
    return found


def _document(file: Light, status: "Status | None", error: str = "") -> dict[str, Any]:
    document: dict[str, Any] = {"name": file.name, "kind": file.kind, "file": str(file.file)}
    if file.mistakes:
        document["mistakes"] = file.mistakes
    if error:
        return {**document, "state": "unknown", "error": error}
    if status is None:
        return {**document, "state": "never run"}
    return replace(status, file=str(file.file)).as_dict() | document


def _row(file: Light, status: "Status | None", error: str) -> list[Cell]:
    from runnel.pipelines.units import counted

    about: list[Cell] = [file.name, file.kind, file.source, file.to, file.every]
    if file.mistakes:
        return [*about, f"{counted(file.mistakes, 'mistake')} in the file", "", None, None]
    if status is None:
        return [*about, "unknown" if error else "never run", "", None, None]
    ago = duration_text(max(0.0, time.time() - status.updated_at))
    lag = None if status.lag is None else count_text(status.lag)
    return [*about, status.state, f"{ago} ago", status.rows, lag]
