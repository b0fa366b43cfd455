"""What a pipeline's file says, checked: `Spec`, and how it is read."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.config.registry import suggestion
from runnel.pipelines import kinds
from runnel.pipelines import spec_reading as parts
from runnel.pipelines.document import Document, Fault, Mark, parse
from runnel.pipelines.options import Options
from runnel.pipelines.sections import Section
from runnel.pipelines.spec_parts import (
    CONTINUOUS,
    DEFAULT_BOOTSTRAP,
    ONCE,
    SPAN,
    Decode,
    Every,
    OnSpark,
    Source,
    Target,
    Transform,
    every_of,
)
from runnel.pipelines.spec_reading import RETRIES

if TYPE_CHECKING:
    from runnel.pipelines.kind import Kind

__all__ = [
    "CONTINUOUS",
    "ONCE",
    "SPAN",
    "Decode",
    "Every",
    "OnSpark",
    "Source",
    "Spec",
    "SpecError",
    "Target",
    "Transform",
    "every_of",
    "load",
    "read",
    "root_of",
    "shown",
]
DEFAULT_KIND: Final = "table"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_NAME_LINE: Final = re.compile(
    rf"^name:[ \t]*([\"']?)(?P<name>{NAME.pattern})\1[ \t]*(?:#|$)", re.MULTILINE
)
"""Where a file is no YAML, so that nobody can say more of it."""


@dataclass(frozen=True)
class Spec:
    name: str
    kind: str = DEFAULT_KIND
    source: Source = field(default_factory=Source)
    decode: Decode = field(default_factory=Decode)
    transform: Transform = field(default_factory=Transform)
    to: Target = field(default_factory=Target)
    every: Every = field(default_factory=Every)
    options: Options = field(default_factory=Options)
    spark: OnSpark = field(default_factory=OnSpark)
    retries: int = RETRIES
    file: Path = Path("pipeline.yml")
    marks: Mapping[str, Mark] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # values that must not be shown

    @property
    def root(self) -> Path:
        """What relative paths start from: the folder that has `pipelines/`, or the file's own."""
        return root_of(self.file)

    def mark(self, where: str) -> Mark:
        """Of a name such as `to.table`, or of what is nearest above it."""
        while where and where not in self.marks:
            where = where.rpartition(".")[0]
        return self.marks.get(where, Mark(1, 1))

    def hidden(self, text: str) -> str:
        """The text without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


class SpecError(Exception):
    """All mistakes of a file, one to a line: `file:line:column: message`.

    `name` is the pipeline's, as far as it can be told: its state is found by it all the same.
    """

    def __init__(self, file: str, faults: list[Fault], name: str = "") -> None:
        self.name = name
        self.faults = sorted(faults, key=lambda fault: fault.mark)
        self.lines = [
            f"{file}:{fault.mark.line}:{fault.mark.column}: {fault.message}"
            for fault in self.faults
        ]
        super().__init__("\n".join(self.lines))


def root_of(file: Path) -> Path:
    folder = file.resolve().parent
    return folder.parent if folder.name == "pipelines" else folder


def load(file: Path, environ: Mapping[str, str] | None = None) -> Spec:
    """Raises SpecError, OSError."""
    return read(file.read_text(encoding="utf-8", errors="replace"), file, environ)


def read(text: str, file: Path, environ: Mapping[str, str] | None = None) -> Spec:
    """Raises SpecError with every mistake that is found without a broker and without Spark."""
    environ = os.environ if environ is None else environ
    document = parse(text, environ)
    if document.is_broken:
        told = _NAME_LINE.search(text)
        raise SpecError(shown(file), document.faults, told["name"] if told else "")
    spec, kind = _read(document, file, environ)
    if kind is not None:
        for problem in kind.check(spec):
            document.faults.append(Fault(spec.mark(problem.where), problem.message))
    if document.faults:
        name = spec.name if NAME.fullmatch(spec.name) else ""
        raise SpecError(shown(file), document.faults, name)
    return spec


def _read(document: Document, file: Path, environ: Mapping[str, str]) -> "tuple[Spec, Kind | None]":
    top = Section(document, document.root, "")
    name = top.text("name", file.stem)
    if not NAME.fullmatch(name):
        top.complain("name", f"name {name!r}: up to 80 of a-z, A-Z, 0-9, '.', '_' and '-'")
    kind = _kind(top)
    bootstrap = environ.get("RUNNEL_BOOTSTRAP_SERVER") or DEFAULT_BOOTSTRAP
    source = parts.source_of(top.section("from"), root_of(file), bootstrap)
    spec = Spec(
        name=name,
        kind=kind.name if kind else "",
        source=source,
        decode=parts.decode_of(top.section("decode"), kind is not None and kind.infers_schema),
        transform=parts.transform_of(top.section("transform"), file),
        to=parts.target_of(top.section("to"), root_of(file), source.bootstrap),
        every=parts.every_in(top),
        spark=parts.spark_of(top.section("spark")),
        retries=parts.retries_in(top),
        file=file.resolve(),
        secrets=_secrets(document),
    )
    options = top.section("options")
    if kind is not None:
        spec = replace(spec, options=options.options(kind.options))
    top.finish()
    return replace(spec, marks=top.marks), None if document.faults else kind


def _kind(top: Section) -> "Kind | None":
    name = top.text("kind", DEFAULT_KIND)
    if name not in kinds.KINDS:
        hint = suggestion(name, kinds.KINDS) or f"; there are {', '.join(sorted(kinds.KINDS))}"
        top.complain("kind", f"unknown kind {name!r}{hint}")
        return None
    return kinds.find(name)


def _secrets(document: Document) -> tuple[str, ...]:
    """Of variables: those whose names tell that they are, and nothing too short to be one."""
    words = re.compile(r"password|passwd|secret|token|key|credential|jaas", re.IGNORECASE)
    return tuple(
        value
        for name, value in document.from_environment.items()
        if words.search(name) and len(value) >= 4
    )


def shown(file: Path) -> str:
    """As short as it can be said from here."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)
