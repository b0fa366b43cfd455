"""A pipeline's plan in words: what is read, what becomes of it, what holds, where state lies."""

from collections.abc import Iterator
from pathlib import Path

from runnel.pipelines import dead_letters, kinds, origin
from runnel.pipelines.checkpoint import reached
from runnel.pipelines.home import Home
from runnel.pipelines.spec import CONTINUOUS, ONCE, Spec, shown


def explain(spec: Spec, home: Home) -> Iterator[tuple[str, str]]:
    """What, and the words for it."""
    kind = kinds.find(spec.kind)
    yield "pipeline", f"{spec.name}: {kind.summary}"
    yield "reads", _reads(spec)
    if spec.source.topics or spec.source.pattern:
        yield "begins", f"at {spec.source.start} the first time, then where it stopped"
        yield "expired", _expired(spec)
    if spec.decode.format:
        yield "decodes", _decodes(dead_letters.as_run(spec, home))
    if spec.transform.sql:
        yield "transforms", f"by SQL: {' '.join(spec.transform.sql.split())}"
    elif spec.transform.python:
        yield "transforms", f"by the function {spec.transform.python}"
    if spec.to.table or spec.to.topic:
        yield "writes", _writes(spec)
    yield "guarantee", kind.guarantee
    for line in kind.explain(spec) if kind.explain is not None else ():
        yield "", line
    yield "runs", _runs(spec)
    if kind.uses_spark:
        yield "spark", spec.spark.master or f"on this machine, {spec.spark.cores or 'all'} cores"
    yield "state", _state(spec, home)


def _reads(spec: Spec) -> str:
    source = spec.source
    if source.table:
        return f"the table {_shown(source.table)}"
    if source.pattern:
        what = f"every topic that matches {source.pattern}"
    elif source.topics:
        what = f"topic{'s' if len(source.topics) > 1 else ''} {', '.join(source.topics)}"
    else:
        return f"the brokers at {source.bootstrap}" if not source.path else source.path
    return f"{what} at {source.bootstrap}, what is committed only"


def _expired(spec: Spec) -> str:
    if spec.source.on_data_loss == "skip":
        return "records that expire before they are read are skipped, and the range is told"
    return "it stops where records expired before they were read (from.on_data_loss: skip goes on)"


def _decodes(spec: Spec) -> str:
    decode = spec.decode
    shape = decode.schema or (f"schemas of {decode.registry}" if decode.registry else "")
    if decode.format == "json" and not shape:
        shape = "the fields that are found in them"
    bad = {
        "dead_letter": f"what does not fit goes to {dead_letters.shown(spec)} with its reason",
        "null": "what does not fit has its reason in _error and its bytes in _raw",
        "skip": "what does not fit is left out",
        "fail": "what does not fit stops the pipeline",
    }
    what = f"values as {decode.format}" + (f": {' '.join(shape.split())}" if shape else "")
    return f"{what}; {bad[decode.bad_records]}"


def _writes(spec: Spec) -> str:
    if spec.to.topic:
        return f"topic {spec.to.topic} at {spec.to.bootstrap}, in transactions"
    apart = f", files apart by {', '.join(spec.to.partition_by)}" if spec.to.partition_by else ""
    return f"the {spec.to.format or 'delta'} table {_shown(spec.to.table)}{apart}"


def _runs(spec: Spec) -> str:
    if spec.every.mode == ONCE:
        return "once: takes what is there, then ends"
    if spec.every.mode == CONTINUOUS:
        return "continuously: a batch as soon as there are records"
    return f"{spec.every}: a batch of what has come"


def _state(spec: Spec, home: Home) -> str:
    where = f"in {shown(home.folder)}"
    if not (spec.source.topics or spec.source.pattern):
        return where
    began = origin.read(home)
    found = reached(home.checkpoint)
    where += f"; the lag also in group spark-runnel-{began.query_id(spec.name)}"
    if found.batch is None:
        return f"{where}; nothing has run yet"
    held = ", with state of the query" if found.has_state else ""
    return f"{where}; batch {found.batch} is done{held}"


def _shown(table: str) -> str:
    return shown(Path(table)) if table.startswith("/") else table
