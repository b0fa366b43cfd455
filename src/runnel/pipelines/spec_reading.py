"""The parts of a pipeline's file out of its sections; what is wrong with them is complained of."""

from pathlib import Path
from typing import Final

from runnel.arrow.decoding import KINDS as DECODERS
from runnel.pipelines.sections import Section
from runnel.pipelines.spec_parts import (
    ONCE,
    Decode,
    Every,
    OnSpark,
    Source,
    Target,
    Transform,
    every_of,
)

FORMATS: Final = ("delta", "iceberg", "parquet")
BAD_RECORDS: Final = ("dead_letter", "null", "skip", "fail")
ON_DATA_LOSS: Final = ("stop", "skip")
MODES: Final = ("append", "complete")
RETRIES: Final = 10
RETRIES_MAX: Final = 1_000_000
CORES_MAX: Final = 4096


def source_of(section: Section, root: Path, bootstrap: str) -> Source:
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


def decode_of(section: Section, infers_schema: bool) -> Decode:
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


def transform_of(section: Section, file: Path) -> Transform:
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


def target_of(section: Section, root: Path, bootstrap: str) -> Target:
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


def every_in(top: Section) -> Every:
    try:
        return every_of(top.text("every", ONCE))
    except ValueError as error:
        top.complain("every", f"every: {error}")
        return Every()


def spark_of(section: Section) -> OnSpark:
    cores = section.text("cores")
    if cores and not 0 < _count(cores) <= CORES_MAX:
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


def retries_in(top: Section) -> int:
    text = top.text("retries", str(RETRIES))
    if not 0 <= _count(text) <= RETRIES_MAX:
        top.complain("retries", f"retries: {text!r} is not a whole number up to {RETRIES_MAX}")
        return RETRIES
    return int(text)


def _count(text: str) -> int:
    """-1 for what is none. Python itself refuses numbers of thousands of digits."""
    return int(text) if text.isdecimal() and len(text) < 20 else -1


def _path(text: str, root: Path) -> str:
    """Absolute, but for what is no folder of this machine: `s3://...`, or a name in a catalog."""
    if not text or "://" in text:
        return text
    return str((root / Path(text).expanduser()).resolve())
