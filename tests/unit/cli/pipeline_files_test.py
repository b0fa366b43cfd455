"""`runnel pipeline` on files that are wrong, doubled or none: others are seen all the same."""

import json
import os
from pathlib import Path

import pytest

from runnel.pipelines import status
from runnel.pipelines.home import Home
from runnel.pipelines.status import Status
from tests.support.command import Runnel

RUNNEL = Runnel("localhost:1")
FILE = "name: {name}\nfrom: {{topic: orders}}\nto: {{table: lake/orders}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    return tmp_path


def put(stem: str, name: str, more: str = "") -> Home:
    Path(f"pipelines/{stem}.yml").write_text(FILE.format(name=name) + more)
    home = Home(Path(".runnel/pipelines") / name)
    home.folder.mkdir(parents=True, exist_ok=True)
    return home


@pytest.mark.parametrize("mistake", ["fromm: 1\n", "every: often\n", "a: [\n"])
def test_a_file_with_mistakes_has_the_state_of_its_name(mistake: str) -> None:
    home = put("file", "other", mistake)
    running = Status.of_this_process("other", "table", "file.yml", "once")
    status.write(home, running)
    assert RUNNEL("pipeline", "status", "file", "--json").json["state"] == "starting"
    (row,) = RUNNEL("pipeline", "list", "--json").json
    assert (row["name"], row["mistakes"] > 0, row["pid"]) == ("other", True, os.getpid())


@pytest.mark.parametrize(
    "content",
    [
        "{broken",
        '{"version": 9}',
        '{"version": 1, "skipped": 1}',
        json.dumps(Status("a", "table", "").as_dict() | {"updated_at": "x"}),
    ],
)
def test_damaged_state_and_folders_hide_no_other_pipeline(content: str) -> None:
    put("a", "a").status_file.write_text(content)
    put("b", "b")
    Path("pipelines/x.yml").mkdir()
    done = RUNNEL("pipeline", "list")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["a", "b"]
    assert "status.json" in done.err and len(done.err.splitlines()) == 1
    first, second = RUNNEL("pipeline", "list", "--json").json
    assert (first["name"], first["state"], "status.json" in first["error"]) == (
        "a",
        "unknown",
        True,
    )
    assert (second["name"], second["state"]) == ("b", "never run")


def test_two_files_of_one_name_are_told() -> None:
    put("a", "same")
    put("b", "same", "every: often\n")
    put("c", "other")
    asked = ("pipeline", "validate", "--offline")
    done = RUNNEL.inside(*asked)
    assert done.status == 1
    assert "pipelines/a.yml:1:7: name: pipelines/b.yml has the name same too" in done.out
    assert "pipelines/c.yml: good" in done.out
    assert RUNNEL.inside(*asked, "a").status == 1
    Path("pipelines/b.yml").unlink()
    RUNNEL(*asked, "a")


def test_all_that_a_plan_says_is_in_its_json() -> None:
    put("a", "a", "decode: {format: json}\noptions: {evolve: true}\n")
    shown = RUNNEL("pipeline", "explain", "a").out
    also = RUNNEL("pipeline", "explain", "a", "--json").json["also"]
    assert len(also) == 3 and also[1] == "fields that the table lacks become columns"
    assert all(line[:40] in shown for line in also)


def test_dead_letters_in_a_topic_are_not_said_to_be_none() -> None:
    text = (
        'name: p\nfrom: {topic: t}\ndecode: {format: json, schema: "id BIGINT"}\nto: {topic: o}\n'
    )
    Path("pipelines/p.yml").write_text(text)
    for asked in (("show", "p"), ("replay", "p"), ("purge", "p", "--yes")):
        done = RUNNEL.inside("pipeline", "dlq", *asked)
        assert done.status != 0 and "are in the topic p-dlq: look at them with" in done.err
