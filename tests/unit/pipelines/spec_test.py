"""Files of pipelines: what they mean, and every mistake at its place."""

from pathlib import Path

import pytest

from runnel.pipelines.document import parse
from runnel.pipelines.spec import Every, Spec, SpecError, read

FILE = Path("/work/pipelines/orders.yml")
GOOD = """\
name: orders
from: {topic: orders, start: "2026-01-31T12:00"}
to:
  table: lake/orders
  partition_by: [day, region]
every: 90 seconds
"""


def faults(text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(text, FILE, environ or {})
    return [line.removeprefix(f"{FILE}:") for line in caught.value.lines]


def spec_of(text: str, **environ: str) -> Spec:
    return read(text, FILE, environ)


def test_a_file_and_its_defaults() -> None:
    spec = spec_of(GOOD)
    assert (spec.kind, spec.source.topics, spec.source.bootstrap) == (
        "table",
        ("orders",),
        "localhost:9092",
    )
    assert spec.to.table == "/work/lake/orders"  # beside `pipelines/`, wherever it is run
    assert spec.to.partition_by == ("day", "region")
    assert spec.every == Every("span", 90_000)
    assert spec_of(GOOD, RUNNEL_BOOTSTRAP_SERVER="a:1").to.bootstrap == "a:1"


def test_all_mistakes_at_once_with_places_and_what_was_meant() -> None:
    text = """\
name: orders
kind: tabel
frm: {topic: orders}
from:
  topics: [a, b]
  on_data_lost: skip
  topic: c
decode: {format: jsno}
every: 5
to:
  table: t
  table: u
spark: {conf: {sql.shuffle: 3}, cores: many}
"""
    assert faults(text) == [
        "2:7: unknown kind 'tabel'; did you mean table?",
        "3:1: unknown name frm; did you mean from?",
        "5:11: from: give one of topic and topics, not both",
        "6:3: unknown name on_data_lost below from; did you mean on_data_loss?",
        "8:18: decode.format: 'jsno' is not one of string, json, avro; did you mean json?",
        "9:8: every: '5' is not a span of time such as 30s, 1 minute or 7 days, nor once, nor"
        " continuous",
        "12:3: table stands here twice; first in line 11",
        "13:29: spark.conf: sql.shuffle does not begin with spark.",
        "13:40: spark.cores: 'many' is not a number of cores",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: b: c", "1:5: not YAML: mapping values are not allowed here; a value with ': ' in it"),
        ("from:\n\ttopic: x", "2:1: not YAML: a tab: YAML is indented with spaces"),
        ("just text", "1:1: the file is 'just text', not a mapping of names"),
        ("from: {topic: x}", "1:1: to.table is missing: a folder such as lake/orders"),
        ("to: {table: x}\nfrom: []", "2:7: from is a list, not a mapping of names"),
        ("", "1:1: from.topic is missing: what is to be read?"),
        (
            GOOD + "decode: {format: json, schema: id BIGNIT}",
            "7:32: decode.schema: id BIGNIT: a type such as BIGINT",
        ),
    ],
)
def test_one_mistake(text: str, fault: str) -> None:
    assert any(line.startswith(fault) for line in faults(text)), faults(text)


def test_variables_of_the_environment() -> None:
    text = GOOD.replace("topic: orders", 'topic: "${TOPIC}-${STAGE:-test}-$${x}"')
    assert spec_of(text, TOPIC="a").source.topics == ("a-test-${x}",)
    assert spec_of(text, TOPIC="a", STAGE="live").source.topics == ("a-live-${x}",)
    assert faults(text) == [
        "2:15: the environment has no TOPIC: set it, or write ${TOPIC:-default}"
    ]


def test_secrets_of_the_environment_are_not_shown() -> None:
    text = GOOD.replace("topic: orders", "topic: orders, options: {kafka.x: '${DB_PASSWORD}'}")
    spec = spec_of(text, DB_PASSWORD="hunter2")
    assert spec.source.options == {"kafka.x": "hunter2"}
    assert spec.hidden("user and hunter2 refused") == "user and *** refused"


def test_a_small_file_cannot_unfold_into_a_huge_one() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    assert "more than 10000 values" in [fault.message for fault in parse(text, {}).faults]


@pytest.mark.parametrize("text", ["a: &a [*a]", "[" * 100_000, "{a: " * 5_000])
def test_what_has_no_end_is_told(text: str) -> None:
    assert faults(text) == ["1:1: it is nested too deep"]


def test_numbers_of_thousands_of_digits_are_refused() -> None:
    nines = "9" * 10_000
    found = faults(f"{GOOD}retries: {nines}\nspark: {{cores: {nines}}}\n")
    assert ["retries:" in found[0], "spark.cores:" in found[1]] == [True, True]
