"""The project that `init --declarative` writes, without Spark; `make spark-declarative` runs it."""

import ast
import os
from pathlib import Path

import pytest
import yaml

from runnel.pipelines.declarative import (
    Project,
    ProjectError,
    environment,
    is_project,
    run_project,
    write_project,
)

# Tells what it was started with, in the words that `spark-pipelines` would look for.
SCRIPT = """#!/bin/sh
echo "$PWD|$*|$SPARK_CONF_DIR|$PYSPARK_PYTHON|$JAVA_HOME" > started
exit 3
"""


def test_all_files_are_whole(tmp_path: Path) -> None:
    written = write_project(tmp_path / "shop", Project("shop", "my-orders.v2", "broker:1"))
    texts = {str(path.relative_to(tmp_path / "shop")): path.read_text() for path in written}
    spec = yaml.safe_load(texts["spark-pipeline.yml"])
    assert spec["name"] == "shop"
    assert spec["storage"] == (tmp_path / "shop" / "pipeline-storage").as_uri()
    assert all(isinstance(value, str) for value in spec["configuration"].values())
    programs = [text for name, text in texts.items() if name.endswith(".py")]
    assert len(programs) == 2
    for program in programs:
        ast.parse(program)
        assert '"broker:1"' in program
    table = texts["transformations/my_orders_v2.py"]
    assert "def my_orders_v2()" in table and '"subscribe", "my-orders.v2"' in table
    assert "FROM my_orders_v2" in texts["transformations/my_orders_v2_by_city.sql"]
    assert "catalogImplementation" in texts["conf/spark-defaults.conf"]
    assert not [name for name, text in texts.items() if "{name}" in text or "{{" in text]
    assert is_project(tmp_path / "shop") and not is_project(tmp_path)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    write_project(tmp_path / "shop", Project("shop"))  # an empty folder will do
    with pytest.raises(ProjectError, match="is there already; choose another name"):
        write_project(tmp_path / "shop", Project("shop"))


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, '"', "../up"])
def test_names_that_do_not_fit_into_the_files_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="letters, digits"):
        write_project(tmp_path / "new", Project(name))
    with pytest.raises(ProjectError, match="letters, digits"):
        write_project(tmp_path / "new", Project("shop", topic=name))
    assert not (tmp_path / "new").exists()


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    write_project(tmp_path / "shop", Project("shop"))
    given = {**os.environ, "SPARK_CONF_DIR": "/mine", "PYSPARK_PYTHON": "/my/python"}
    found = environment(tmp_path / "shop", given)
    assert (found["SPARK_CONF_DIR"], found["PYSPARK_PYTHON"]) == ("/mine", "/my/python")
    assert (Path(found["JAVA_HOME"]) / "bin" / "java").exists()


def test_it_is_run_in_its_folder_with_all_that_spark_looks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, spark = tmp_path / "shop", tmp_path / "spark"
    write_project(shop, Project("shop"))
    (spark / "bin").mkdir(parents=True)
    program = spark / "bin" / "spark-pipelines"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(spark))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-ours")
    assert run_project(shop, ["--full-refresh-all"]) == 3
    folder, arguments, conf, python, java = (shop / "started").read_text().strip().split("|")
    assert (folder, arguments) == (str(shop), "run --full-refresh-all")
    assert (conf, python) == (str(shop / "conf"), "python-of-ours")
    assert java
