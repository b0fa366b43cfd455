"""What is wrong with a pipeline, found without Spark: by its file alone, or by asking around."""

import ast
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runnel.arrow.errors import OptionError, SourceError
from runnel.pipelines.kind import Problem
from runnel.pipelines.reading import source_options
from runnel.pipelines.spec import Decode, Spec
from runnel.pipelines.starting import start_options
from runnel.pipelines.writing import table_options

SQL_STARTS = ("select", "with", "from", "values", "(", "--", "/*")


def of_file(spec: Spec) -> Iterator[Problem]:
    """Options of source and table, the transform's file; asks nobody."""
    try:
        start_options(spec.source.start)
    except ValueError as error:
        yield Problem("from.start", f"from.start: {error}")
    else:
        yield from _source(spec)
    if spec.decode.schema and not spec.decode.nested and spec.kind == "table":
        yield from _fields(spec)
    if spec.to.table:
        yield from _table(spec)
    if spec.transform.sql:
        yield from _sql(spec.transform.sql)
    if spec.transform.python:
        yield from _python(spec)


def of_surroundings(spec: Spec) -> Iterator[Problem]:
    """Whether the brokers answer and have the topics, and whether the table can be written."""
    if spec.source.topics or spec.source.pattern:
        yield from _topics(spec)
    if spec.to.table and "://" not in spec.to.table:
        yield from _folder(Path(spec.to.table))


def missing_topics(spec: Spec) -> list[Problem]:
    """That are named and not there. None where no broker answers: a run waits for one."""
    if not spec.source.topics or spec.source.path:
        return []
    return [problem for problem in _topics(spec) if problem.where.startswith("from.topic")]


def _source(spec: Spec) -> Iterator[Problem]:
    from runnel.spark.reads.options import stream_options

    if not (spec.source.topics or spec.source.pattern):
        return
    if spec.decode.format == "json" and not spec.decode.schema:  # its kind finds it out
        spec = replace(spec, decode=Decode())
    try:
        stream_options(source_options(spec, spec.name))
    except (OptionError, ValueError) as error:
        yield Problem("from", f"from: {error}")


def _fields(spec: Spec) -> Iterator[Problem]:
    """Of a declared schema: those that cannot be columns beside the record's own."""
    from runnel.arrow.decoders import taken_names, value_struct
    from runnel.arrow.decoding import DecodeOptionError, Decoding
    from runnel.pipelines.value_columns import BESIDE, column_name

    decode = spec.decode
    try:
        names = value_struct(Decoding(decode.format, decode.schema)).names
    except (DecodeOptionError, ImportError, ValueError):  # which is said elsewhere
        return
    if spec.options.flag("evolve"):  # then those of the same name have a prefix
        beside = {name.lower() for name in BESIDE}
        taken = [name for name in names if column_name(name).lower() in beside]
        way = "rename it"
    else:
        taken = taken_names(names, "fail" if decode.bad_records == "fail" else "null")
        way = "set decode.nested: true, then it is in value"
    for name in taken:
        yield Problem(
            "decode.schema",
            f"decode.schema: {name} is the name of a column that every record has: {way}",
        )


def _table(spec: Spec) -> Iterator[Problem]:
    from runnel.spark.lake.lake_options import TableError, parse
    from runnel.spark.lake.lake_table import open_table

    try:
        open_table(parse(table_options(spec) | dict(spec.to.options)))
    except TableError as error:
        yield Problem("to", f"to: {error}")
    except ImportError as error:
        yield Problem("to", f"{error.name} is not installed: pip install 'runnel[spark]'")


def _sql(text: str) -> Iterator[Problem]:
    """Only Spark can parse it; what is surely wrong is told sooner."""
    if not text.lower().lstrip().startswith(SQL_STARTS):
        yield Problem("transform.sql", "transform.sql is no query: it begins with select or with")
    elif "input" not in text.lower():
        yield Problem("transform.sql", "transform.sql does not read from input, the topic's rows")


def _python(spec: Spec) -> Iterator[Problem]:
    name, _, function = spec.transform.python.partition(":")
    file = spec.file.parent / name
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), name)
    except SyntaxError as error:
        yield Problem("transform.python", f"{name}:{error.lineno}:{error.offset}: {error.msg}")
        return
    except (OSError, ValueError) as error:
        yield Problem("transform.python", f"{name} cannot be read: {error}")
        return
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    imported = any(isinstance(node, ast.ImportFrom | ast.Assign) for node in tree.body)
    if function not in names and not imported:
        known = f"; it has {', '.join(sorted(names))}" if names else ""
        yield Problem("transform.python", f"{name} has no function {function}{known}")


def _topics(spec: Spec) -> Iterator[Problem]:
    from runnel.spark.reads.assignment import assignment
    from runnel.spark.reads.logs import open_logs
    from runnel.spark.reads.options import stream_options

    try:
        options = stream_options(source_options(replace(spec, decode=Decode()), spec.name))
        logs = open_logs(options)
        try:
            found = assignment(logs, options.subscription, must_exist=False)
        finally:
            logs.close()
    except (OptionError, SourceError, ValueError) as error:
        yield Problem("from.bootstrap", f"from: {error}")
        return
    there = {at.topic for at in found.partitions}
    for topic in spec.source.topics:
        if topic not in there:
            yield Problem(
                "from.topic" if len(spec.source.topics) == 1 else "from.topics",
                f"there is no topic {topic}: 'runnel topic create {topic}' makes it",
            )
    if spec.source.pattern and not there:
        yield Problem("from.pattern", f"no topic matches {spec.source.pattern!r} yet")


def _folder(table: Path) -> Iterator[Problem]:
    nearest = table
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        yield Problem("to.table", f"to.table: {nearest} is no folder")
    elif not os.access(nearest, os.W_OK | os.X_OK):
        yield Problem("to.table", f"to.table: {nearest} cannot be written to by this user")
