"""`runnel pipeline init`: a commented file to begin with."""

import re
from pathlib import Path

from runnel.cli.output import CommandError, note, show_json, show_line, show_table
from runnel.cli.pipeline_files import FOLDER, SUFFIXES, is_name

_TOPIC = re.compile(r"^(from:\n(?:[ #].*\n)*? +topic: )\S+", re.MULTILINE)


def show_kinds(*, as_json: bool) -> None:
    from runnel.pipelines import kinds

    found = [kinds.find(name) for name in kinds.KINDS]
    if as_json:
        show_json([{"kind": kind.name, "summary": kind.summary} for kind in found])
    else:
        show_table(["kind", "what it does"], [[kind.name, kind.summary] for kind in found])


def write(name: str, template: str, topic: str | None, *, force: bool) -> None:
    from runnel.cluster.topic_names import ensure_legal
    from runnel.config.registry import suggestion
    from runnel.errors import RunnelError
    from runnel.pipelines import kinds

    name = Path(name).stem if Path(name).suffix in SUFFIXES else name
    if not is_name(name):
        raise CommandError(
            f"{name!r} is no name for a pipeline: up to 80 of a-z, A-Z, 0-9, '.', '_' and '-'."
        )
    if template not in kinds.KINDS:
        hint = suggestion(template, kinds.KINDS) or "; 'runnel pipeline init --list' shows them"
        raise CommandError(f"there is no kind {template!r}{hint}")
    kind = kinds.find(template)
    file = FOLDER / f"{name}.yml"
    text = kind.template.replace("NAME", name)
    if topic is not None:
        try:
            ensure_legal(topic)
        except RunnelError as error:
            raise CommandError(f"--topic: {error}.") from None
        text, found = _TOPIC.subn(rf"\g<1>{topic}", text, count=1)
        if not found:
            raise CommandError(
                f"--topic: a {template} pipeline reads no single topic; leave it out."
            )
    _written(file, text, force=force)
    if kind.python:
        _written(FOLDER / "transforms.py", kind.python, force=force)
    show_line(f"wrote {file}")
    note(f"Edit it, then: runnel pipeline validate {name}; runnel pipeline run {name}")


def _written(file: Path, content: str, *, force: bool) -> None:
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(content)
    except FileExistsError as error:
        if error.filename != str(file):
            raise CommandError(f"{error.filename} is no folder.") from None
        raise CommandError(f"{file} is there already; --force writes over it.") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
