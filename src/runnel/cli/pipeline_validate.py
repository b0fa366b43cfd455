"""`runnel pipeline validate`: all that is wrong, with its line; 0 if nothing is, else 1."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from runnel.cli.output import EXIT_FAILED, CommandError, note, show_json, show_line
from runnel.cli.pipeline_files import FileMistakeError, all_files, find, light, lines_of, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runnel.pipelines.kind import Problem
    from runnel.pipelines.spec import Spec


def validate(given: str | None, *, offline: bool, spark: bool, as_json: bool) -> None:
    files = [find(given)] if given is not None else all_files()
    if not files:
        raise CommandError("there is no pipeline in ./pipelines; 'runnel pipeline init' makes one.")
    found = {str(file): _mistakes(file, offline=offline, spark=spark) for file in files}
    if as_json:
        show_json([{"file": file, "mistakes": lines} for file, lines in found.items()])
    else:
        for file, lines in found.items():
            for line in lines:
                show_line(line)
            if not lines:
                show_line(f"{file}: good")
    count = sum(len(lines) for lines in found.values())
    if count:
        raise CommandError(f"{count} problem{'s' if count > 1 else ''}.", EXIT_FAILED)


def _mistakes(file: Path, *, offline: bool, spark: bool) -> list[str]:
    from runnel.pipelines import checks

    try:
        spec = read(file)
    except FileMistakeError as error:
        return error.lines
    problems = [*_twins(spec), *checks.of_file(spec)]
    if not offline and not problems:
        problems += checks.of_surroundings(spec)
    lines = lines_of(spec, problems)
    if spark and not lines:
        note(f"{spec.name}: asking Spark ...")
        lines = _by_spark(spec)
    return lines


def _twins(spec: "Spec") -> "Iterator[Problem]":
    """Other files of the same name: where a pipeline is, is kept by its name."""
    from runnel.pipelines.kind import Problem
    from runnel.pipelines.spec import root_of

    for file in all_files():
        if file.resolve() == spec.file or root_of(file) != spec.root:
            continue
        try:
            other = light(file).name
        except CommandError:  # it is told where it is looked at
            continue
        if other == spec.name:
            yield Problem("name", f"name: {file} has the name {spec.name} too, and so its state")


def _by_spark(spec: "Spec") -> list[str]:
    """Whether it can be built: columns, functions and types, by Spark itself."""
    from runnel.pipelines.building import built
    from runnel.pipelines.failures import PipelineError
    from runnel.pipelines.kind import Problem

    with TemporaryDirectory(prefix="runnel-validate-") as folder:
        try:
            with built(spec, Path(folder)):
                return []
        except PipelineError as error:
            return lines_of(spec, [Problem("transform", error.failure.text)])
