"""`replay`: the rows of a table back to a topic, each once."""

from collections.abc import Iterator
from typing import Final

from runnel.pipelines.kind import Flow, Kind, Option, Problem, Report, Run, Spec, Turn, Turns
from runnel.pipelines.spec import ONCE
from runnel.pipelines.starting import time_ms

TEMPLATE: Final = """\
# The rows of a table to a topic, as the records that they were.
name: NAME
kind: replay

from:
  table: lake/NAME

to:
  topic: NAME-again
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}

options:
  #from: 2026-01-31T12:00          # by the column timestamp, up to `until`
  #until: 2026-01-31T13:00
  #rate: 1000                      # rows a second; as fast as it goes unless told
  keep_partitions: false           # true: to the partition that the record was in
"""
OPTIONS: Final = (
    Option("from", "text", "rows of this time or later"),
    Option("until", "text", "rows of before this time"),
    Option("rate", "number", "rows a second", default=0.0, least=0.0),
    Option("keep_partitions", "flag", "to the partition that each was in", default=False),
)


def check(spec: Spec) -> Iterator[Problem]:
    if not spec.source.table:
        yield Problem("from", "from.table is missing: the table whose rows are to be sent")
    if not spec.to.topic:
        yield Problem("to", "to.topic is missing: where they are to go")
    if spec.every.mode != ONCE:
        yield Problem("every", "a replay is done once: leave out every")
    for name in ("from", "until"):
        try:
            _time(spec, name)
        except ValueError as error:
            yield Problem(f"options.{name}", f"options.{name}: {error}")


def _time(spec: Spec, name: str) -> int | None:
    text = spec.options.text(name)
    return time_ms(text) if text else None


def build(run: Run) -> Flow:
    from runnel.pipelines.replaying import Replay, Replayer
    from runnel.spark.lake import lake_options

    spec = run.spec
    options = {"table": spec.source.table, **spec.source.options}
    replayer = Replayer(
        Replay(
            lake_options.parse(options),
            spec.to.bootstrap,
            spec.to.topic,
            _time(spec, "from"),
            _time(spec, "until"),
            spec.options.number("rate"),
            spec.options.flag("keep_partitions"),
            written=" ".join(spec.options.text(name) or "None" for name in ("from", "until")),
        ),
        run.notes,
        run.is_stopping,
    )

    def step(turn: Turn) -> Report:
        return replayer.turn()

    return Turns(step)


KIND = Kind(
    name="replay",
    summary="the rows of a table back to a topic, with key, headers and timestamp",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each row exactly once, for readers of what is committed",
    uses_spark=False,
)
