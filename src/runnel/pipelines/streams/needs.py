"""What several kinds ask of a file in the same words."""

from collections.abc import Iterator

from runnel.pipelines.kind import Problem, Spec
from runnel.pipelines.streams.identity import parse_by


def topic_needed(spec: Spec) -> Iterator[Problem]:
    if not (spec.source.topics or spec.source.pattern):
        yield Problem("from", "from.topic is missing: what is to be read?")


def target_needed(spec: Spec) -> Iterator[Problem]:
    if not (spec.to.table or spec.to.topic):
        yield Problem("to", "to.table is missing, a folder such as lake/orders; or to.topic")


def table_needed(spec: Spec) -> Iterator[Problem]:
    if not spec.to.table:
        what = "a topic cannot be it" if spec.to.topic else "a folder such as lake/lags"
        yield Problem("to", f"to.table is missing: {what}")


def raw_input(spec: Spec, why: str) -> Iterator[Problem]:
    """Of kinds that take records as they are in the topic."""
    if spec.decode.format:
        yield Problem("decode", f"{spec.kind} takes no decode: {why}")
    if spec.transform.sql or spec.transform.python:
        yield Problem("transform", f"{spec.kind} takes no transform: {why}")


def by_problems(spec: Spec, name: str) -> Iterator[Problem]:
    text = spec.options.text(name)
    if not text:
        return
    try:
        by = parse_by(text)
    except ValueError as error:
        yield Problem(f"options.{name}", f"{name}: {error}")
        return
    if by.needs_bytes and (spec.decode.format or spec.transform.sql or spec.transform.python):
        yield Problem(
            f"options.{name}",
            f"{name}: {text} looks into values as they are in the topic, and here they are decoded"
            f" or transformed: write sql:COLUMN",
        )
