"""Where dead letters go, by the file alone, and what is said of it."""

from pathlib import Path

import pytest

from runnel.pipelines import dead_letters, dlq, explaining, upkeep
from runnel.pipelines.home import Home
from runnel.pipelines.spec import SpecError
from runnel.spark.lake.lake_options import TableError
from tests.support.pipeline_runs import spec_of

FILE = 'name: p\nfrom: {topic: t}\ndecode: {format: json, schema: "id BIGINT, at STRING"}\n'
TABLE = "to: {table: lake/t}\n"


def sql(text: str) -> str:
    return f'transform: {{sql: "{text}"}}\n'


@pytest.mark.parametrize(
    "more",
    [
        "to: {topic: out}\n",
        "to: {table: lake/t, mode: complete}\n" + sql("select id from input"),
        TABLE + sql("select id, count(*) as n from input GROUP  BY id"),
        TABLE + sql("select sum(id) as n from input"),
        TABLE + sql("select distinct id from input"),
        "kind: sessions\noptions: {by: key}\nto: {table: lake/t}\n",
    ],
)
def test_a_query_that_is_more_than_its_batches_has_a_topic_of_them(
    tmp_path: Path, more: str
) -> None:
    spec = spec_of(FILE + more, tmp_path)
    assert dead_letters.to_topic(spec) == "p-dlq"
    for look in (dlq.letters, dlq.kept, lambda each: dlq.purge(each, None, None)):
        with pytest.raises(TableError, match="in the topic p-dlq: look at them with"):
            look(spec)
    said = dict(explaining.explain(spec, Home(tmp_path / "home")))
    assert "goes to the topic p-dlq with its reason" in said["decodes"]
    if spec.to.table:
        assert len(list(upkeep.tables(spec))) == 1


@pytest.mark.parametrize(
    "more",
    [
        TABLE,
        TABLE + sql("select id, array_join(array(at), ',') as a, 'group by' as b from input"),
        TABLE + sql("select id as `count (`, at as limit from input -- order by"),
        TABLE + sql("select count(*) as n from input") + "options: {evolve: true}\n",
        TABLE + "kind: cdc\n",
    ],
)
def test_others_have_a_table(tmp_path: Path, more: str) -> None:
    spec = spec_of(FILE + more, tmp_path)
    assert dead_letters.to_topic(spec) == ""
    assert dlq.letters(spec) == []
    said = dict(explaining.explain(spec, Home(tmp_path / "home")))
    assert "lake/t__dlq with its reason" in said["decodes"]
    assert len(list(upkeep.tables(spec))) == 2


def test_what_decodes_nothing_has_none(tmp_path: Path) -> None:
    spec = spec_of("name: l\nkind: lag-history\nto: {table: lake/l}\n", tmp_path)
    assert dlq.letters(spec) == []


def test_a_topic_is_not_called_like_a_folder(tmp_path: Path) -> None:
    text = FILE.replace('at STRING"', 'at STRING", dead_letters: lake/dlq')
    with pytest.raises(SpecError, match="go to a topic"):
        spec_of(text + "to: {topic: out}\n", tmp_path)
    assert dead_letters.table_of(spec_of(text + TABLE, tmp_path)) == str(tmp_path / "lake/dlq")


def test_columns_that_are_found_in_values_are_not_called_text(tmp_path: Path) -> None:
    text = FILE.replace(', schema: "id BIGINT, at STRING"', "") + TABLE
    spec = spec_of(text + "options: {evolve: true}\n", tmp_path)
    said = dict(explaining.explain(spec, Home(tmp_path / "home")))
    assert said["decodes"].startswith("values as json: the fields that are found in them; ")
    spec = spec_of(FILE.replace('json, schema: "id BIGINT, at STRING"', "string") + TABLE, tmp_path)
    said = dict(explaining.explain(spec, Home(tmp_path / "home")))
    assert said["decodes"].startswith("values as string; ")


def test_a_run_shows_whether_python_keeps_state(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def made(rows):\n    return rows.groupBy('id').count()\n")
    spec = spec_of(FILE + TABLE + "transform: {python: f.py:made}\n", tmp_path)
    home = Home(tmp_path / "home")
    assert dead_letters.to_topic(dead_letters.as_run(spec, home)) == ""
    (home.checkpoint / "state").mkdir(parents=True)
    assert dead_letters.to_topic(dead_letters.as_run(spec, home)) == "p-dlq"
    assert "goes to the topic p-dlq" in dict(explaining.explain(spec, home))["decodes"]
