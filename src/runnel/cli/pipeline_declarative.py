"""`runnel pipeline init --declarative`, and `run` for the folder that it wrote."""

import time
from pathlib import Path

from runnel.cli.output import EXIT_FAILED, CommandError, note, show_line


def init(name: str, topic: str | None, bootstrap: str) -> None:
    """A folder of that name, here."""
    from runnel.pipelines.declarative import Project, ProjectError, write_project

    folder = Path(name)
    try:
        written = write_project(folder, Project(folder.name, topic or "orders", bootstrap))
    except ProjectError as error:
        raise CommandError(f"{error}.") from None
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}.") from None
    for path in written:
        show_line(f"wrote {path}")
    note(f"'runnel pipeline run {name}' runs it, as often as you like; {name}/README.md says more.")


def is_project(given: str) -> bool:
    from runnel.pipelines.declarative import is_project as has_file

    return has_file(Path(given))


def run(given: str, every: str | None) -> None:
    """Once, or again after each span; a run ends when all that was there is taken in."""
    from runnel.pipelines.declarative import ProjectError, run_project
    from runnel.pipelines.spec import CONTINUOUS, ONCE, every_of
    from runnel.spark.java import SparkSetupError

    try:
        asked = every_of(every or ONCE)
    except ValueError as error:
        raise CommandError(f"--every: {error}.") from None
    while True:
        began = time.monotonic()
        try:
            status = run_project(Path(given))
        except (ProjectError, SparkSetupError) as error:
            raise CommandError(str(error)) from None
        if status != 0:
            raise CommandError(
                f"spark-pipelines ended with status {status}; what it printed is above.",
                EXIT_FAILED,
            )
        if asked.mode == ONCE:
            return
        pause_s = 0.0 if asked.mode == CONTINUOUS else asked.interval_ms / 1000
        time.sleep(max(0.0, pause_s - (time.monotonic() - began)))
