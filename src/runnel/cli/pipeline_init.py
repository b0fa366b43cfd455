"""`runnel pipeline init`: a commented file to begin with."""

import re
from pathlib import Path

from runnel.cli.output import CommandError, note, show_json, show_line, show_table
from runnel.cli.pipeline_files import FOLDER, is_name

_TOPIC = re.compile(r"^(from:\n(?:[ #].*\n)*? +topic: )\S+", re.MULTILINE)


def show_kinds(*, as_json: bool) -> None:
    from runnel.pipelines import kinds

    found = [kinds.find(name) for name in kinds.KINDS]
    if as_json:
        show_json([{"kind": kind.name, "summary": kind.summary} for kind in found])
    else:
        show_table(["kind", "what it does"], [[kind.name, kind.summary] for kind in found])


def write(name: str, template: str, topic: str | None, *, force: bool) -> None:
    from runnel.config.registry import suggestion
    from runnel.pipelines import kinds

    if not is_name(name):
        raise CommandError(
            f"{name!r} is no name for a pipeline: up to 80 of a-z, A-Z, 0-9, '.', '_' and '-'."
        )
    if template not in kinds.KINDS:
        hint = suggestion(template, kinds.KINDS) or "; 'runnel pipeline init --list' shows them"
        raise CommandError(f"there is no kind {template!r}{hint}")
    kind = kinds.find(template)
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"{name}.yml"
    text = kind.template
    if topic is not None:
        text = _TOPIC.sub(lambda found: found[1] + topic, text, count=1)
    _written(file, text.replace("NAME", name), force=force)
    if kind.python:
        _written(FOLDER / "transforms.py", kind.python, force=force)
    show_line(f"wrote {file}")
    note(f"Edit it, then: runnel pipeline validate {name}; runnel pipeline run {name}")


def _written(file: Path, content: str, *, force: bool) -> None:
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(content)
    except FileExistsError:
        raise CommandError(f"{file} is there already; --force writes over it.") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
