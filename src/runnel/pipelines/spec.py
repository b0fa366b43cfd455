"""What a pipeline's file says, checked: `Spec`, and how it is read."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.arrow.decoding import KINDS as DECODERS
from runnel.config.registry import suggestion
from runnel.pipelines import kinds
from runnel.pipelines.document import Document, Fault, Mark, parse
from runnel.pipelines.options import Options
from runnel.pipelines.sections import Section
from runnel.pipelines.units import span_ms, span_text

if TYPE_CHECKING:
    from runnel.pipelines.kind import Kind

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
DEFAULT_KIND: Final = "table"
FORMATS: Final = ("delta", "iceberg", "parquet")
BAD_RECORDS: Final = ("dead_letter", "null", "skip", "fail")
ON_DATA_LOSS: Final = ("stop", "skip")
MODES: Final = ("append", "complete")
ONCE: Final = "once"
CONTINUOUS: Final = "continuous"
SPAN: Final = "span"
RETRIES: Final = 10
RETRIES_MAX: Final = 1_000_000
EVERY_MS_MAX: Final = 366 * 86_400_000
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True)
class Source:
    """`from:`"""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    table: str = ""  # an absolute path, or a name with `catalog.*` options
    path: str = ""  # data folders of a broker on this machine
    bootstrap: str = DEFAULT_BOOTSTRAP
    start: str = "earliest"  # or latest, a time, offsets as JSON
    on_data_loss: str = "stop"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decode:
    """`decode:`; format is empty where values stay bytes."""

    format: str = ""
    schema: str = ""
    registry: str = ""
    subject: str = ""
    bad_records: str = "dead_letter"
    dead_letters: str = ""  # a topic; the kind says what it is unless told
    nested: bool = False


@dataclass(frozen=True)
class Transform:
    """`transform:`; at most one of the two."""

    sql: str = ""
    python: str = ""  # `file.py:function`, the file beside the pipeline's


@dataclass(frozen=True)
class Target:
    """`to:`"""

    table: str = ""
    format: str = ""  # of a table; what its folder holds, else delta
    partition_by: tuple[str, ...] = ()
    topic: str = ""
    bootstrap: str = DEFAULT_BOOTSTRAP
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Every:
    mode: str = ONCE  # or continuous, span
    interval_ms: int = 0

    def __str__(self) -> str:
        return f"every {span_text(self.interval_ms)}" if self.mode == SPAN else self.mode


@dataclass(frozen=True)
class OnSpark:
    """`spark:`; this machine unless a master is named."""

    master: str = ""
    cores: int | None = None
    memory: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


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
    """All mistakes of a file, one to a line: `file:line:column: message`."""

    def __init__(self, file: str, faults: list[Fault]) -> None:
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
        raise SpecError(shown(file), document.faults)
    spec, kind = _read(document, file, environ)
    if kind is not None:
        for problem in kind.check(spec):
            document.faults.append(Fault(spec.mark(problem.where), problem.message))
    if document.faults:
        raise SpecError(shown(file), document.faults)
    return spec


def _read(document: Document, file: Path, environ: Mapping[str, str]) -> "tuple[Spec, Kind | None]":
    top = Section(document, document.root, "")
    name = top.text("name", file.stem)
    if not NAME.fullmatch(name):
        top.complain("name", f"name {name!r}: up to 80 of a-z, A-Z, 0-9, '.', '_' and '-'")
    kind = _kind(top)
    bootstrap = environ.get("RUNNEL_BOOTSTRAP_SERVER") or DEFAULT_BOOTSTRAP
    source = _source(top.section("from"), root_of(file), bootstrap)
    spec = Spec(
        name=name,
        kind=kind.name if kind else "",
        source=source,
        decode=_decode(top.section("decode"), kind is not None and kind.infers_schema),
        transform=_transform(top.section("transform"), file),
        to=_target(top.section("to"), root_of(file), source.bootstrap),
        every=_every(top),
        spark=_spark(top.section("spark")),
        retries=_retries(top),
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


def _source(section: Section, root: Path, bootstrap: str) -> Source:
    topic, topics = section.text("topic"), section.texts("topics")
    found = Source(
        topics=(topic,) if topic else topics,
        pattern=section.text("pattern"),
        table=_path(section.text("table"), root),
        path=_path(section.text("path"), root),
        bootstrap=section.text("bootstrap", bootstrap),
        start=section.text("start", "earliest"),
        on_data_loss=section.choice("on_data_loss", ON_DATA_LOSS, "stop"),
        options=section.mapping("options"),
    )
    given = [name for name in ("topic", "topics", "pattern", "table") if name in section]
    if len(given) > 1:
        section.complain(given[1], f"from: give one of {' and '.join(given)}, not both")
    section.finish()
    return found


def _decode(section: Section, infers_schema: bool) -> Decode:
    found = Decode(
        format=section.choice("format", DECODERS, ""),
        schema=section.text("schema"),
        registry=section.text("registry"),
        subject=section.text("subject"),
        bad_records=section.choice("bad_records", BAD_RECORDS, "dead_letter"),
        dead_letters=section.text("dead_letters"),
        nested=section.choice("nested", ("true", "false"), "false") == "true",
    )
    given = list(section)
    if given and not found.format and "format" not in given:
        section.complain(given[0], f"decode.format is missing: one of {', '.join(DECODERS)}")
    elif found.format == "json" and not found.schema and not infers_schema:
        section.complain("format", "decode.schema is missing, such as 'id BIGINT, name STRING'")
    elif found.format == "avro" and not (found.schema or found.registry):
        section.complain("format", "decode needs schema (an Avro schema) or registry (a URL)")
    if found.format == "json" and found.schema:
        _check_schema(section, found.schema)
    section.finish()
    return found


def _check_schema(section: Section, schema: str) -> None:
    from runnel.arrow.ddl import struct_type

    try:
        struct_type(schema)
    except ImportError:  # PySpark's types: whoever runs it has them
        pass
    except ValueError as error:
        said = str(error).removeprefix("valueSchema").lstrip("=: ")
        section.complain("schema", f"decode.schema: {said}")


def _transform(section: Section, file: Path) -> Transform:
    found = Transform(section.text("sql"), section.text("python"))
    if found.sql and found.python:
        section.complain("python", "transform: give sql or python, not both")
    if found.python:
        name, _, function = found.python.partition(":")
        if not name.endswith(".py") or not function.isidentifier():
            section.complain(
                "python", f"transform.python: write file.py:function, not {found.python!r}"
            )
        elif not (file.resolve().parent / name).is_file():
            section.complain("python", f"transform.python: there is no file {name} beside this one")
    section.finish()
    return found


def _target(section: Section, root: Path, bootstrap: str) -> Target:
    found = Target(
        table=_path(section.text("table"), root),
        format=section.choice("format", FORMATS, ""),
        partition_by=section.texts("partition_by"),
        topic=section.text("topic"),
        bootstrap=section.text("bootstrap", bootstrap),
        mode=section.choice("mode", MODES, "append"),
        options=section.mapping("options"),
    )
    if found.table and found.topic:
        section.complain("topic", "to: give table or topic, not both")
    section.finish()
    return found


def _every(top: Section) -> Every:
    try:
        return every_of(top.text("every", ONCE))
    except ValueError as error:
        top.complain("every", f"every: {error}")
        return Every()


def every_of(text: str) -> Every:
    """Raises ValueError."""
    if text in (ONCE, CONTINUOUS):
        return Every(text)
    try:
        interval_ms = span_ms(text)
    except ValueError as error:
        raise ValueError(f"{error}, nor once, nor continuous") from None
    if not 0 < interval_ms <= EVERY_MS_MAX:
        raise ValueError(f"{text!r} is not between 1 ms and 366 days")
    return Every(SPAN, interval_ms)


def _spark(section: Section) -> OnSpark:
    cores = section.text("cores")
    if cores and not (cores.isdecimal() and 0 < int(cores) <= 4096):
        section.complain("cores", f"spark.cores: {cores!r} is not a number of cores")
        cores = ""
    conf = section.mapping("conf")
    for name in conf:
        if not name.startswith("spark."):
            section.complain(f"conf.{name}", f"spark.conf: {name} does not begin with spark.")
    found = OnSpark(
        master=section.text("master"),
        cores=int(cores) if cores else None,
        memory=section.text("memory"),
        conf=conf,
    )
    section.finish()
    return found


def _retries(top: Section) -> int:
    text = top.text("retries", str(RETRIES))
    if not (text.isdecimal() and int(text) <= RETRIES_MAX):
        top.complain("retries", f"retries: {text!r} is not a whole number up to {RETRIES_MAX}")
        return RETRIES
    return int(text)


def _path(text: str, root: Path) -> str:
    """Absolute, but for what is no folder of this machine: `s3://...`, or a name in a catalog."""
    if not text or "://" in text:
        return text
    return str((root / Path(text).expanduser()).resolve())


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
