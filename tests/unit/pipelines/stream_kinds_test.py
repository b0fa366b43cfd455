"""What the streaming kinds accept in a file; their templates are files that they accept."""

import re
from pathlib import Path

import pytest

from runnel.pipelines import kinds
from runnel.pipelines.spec import SpecError, read
from runnel.pipelines.streams.identity import parse_by

OURS = ("dedup", "lag-history", "sessions", "storage", "traffic")


@pytest.mark.parametrize("name", OURS)
def test_templates_are_accepted(name: str, tmp_path: Path) -> None:
    kind = kinds.find(name)
    template = kind.template.replace("TOPIC", "theirs").replace("NAME", "mine")
    spec = read(template, tmp_path / "mine.yml", {})
    assert (spec.name, spec.kind) == ("mine", name)
    assert kind.explain is not None and list(kind.explain(spec))
    uncommented = re.sub(r"(?m)^  #(?=\w)", "  ", template)
    assert read(uncommented, tmp_path / "mine.yml", {}).kind == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: traffic\nfrom: {topic: a}", "to.table is missing"),
        ("kind: traffic\nto: {topic: b}", "from.topic is missing"),
        (
            "kind: traffic\nfrom: {topic: a}\nto: {table: t}\noptions:\n  emit: changes",
            ":6:9: emit: changes goes to a topic",
        ),
        (
            "kind: traffic\nfrom: {topic: a}\nto: {table: t}\noptions: {windows: 1m}",
            "did you mean",
        ),
        (
            "kind: traffic\nfrom: {topic: a}\nto: {table: t}\n"
            "options: {late_after: 300d, window: 1s}",
            "take a longer window",
        ),
        (
            "kind: traffic\nfrom: {topic: a}\nto: {table: t}\ntransform: {sql: select 1}",
            "takes no transform",
        ),
        (
            "kind: dedup\nfrom: {topic: a}\nto: {topic: a}",
            "to.topic is what is read",
        ),
        ("kind: dedup\nfrom: {topic: a}\nto: {table: b}", "to.topic is missing"),
        (
            "kind: dedup\nfrom: {topic: a}\nto: {topic: b}\noptions: {by: id}",
            "by: 'id' is not key, value, json:FIELD",
        ),
        (
            "kind: sessions\nfrom: {topic: a}\nto: {topic: b}\noptions: {by: json:id}\n"
            "transform: {sql: select * from input}",
            "write sql:COLUMN",
        ),
        (
            "kind: sessions\nfrom: {topic: a}\nto: {topic: b}\noptions: {gap: 5}",
            "span of time",
        ),
    ],
)
def test_mistakes_are_told_with_their_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as told:
        read(f"name: mine\n{text}", tmp_path / "mine.yml", {})
    assert words in str(told.value)


@pytest.mark.parametrize("text", ["", "id", "json:", "json:a b", "header:", "header:a'b", "sql: "])
def test_by_is_checked(text: str) -> None:
    with pytest.raises(ValueError, match="is not key, value"):
        parse_by(text)
