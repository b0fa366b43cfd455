"""The script that Spark's Python processes are started by: the interpreter, without the zip."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from runnel.spark.workers import worker_python

ZIP = str(Path(pyspark.__file__).parent / "python/lib/pyspark.zip")
PROGRAM = "import os, sys; print(os.environ.get('PYTHONPATH')); print(sys.executable)"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))


def run(python_path: str | None) -> list[str]:
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    if python_path is not None:
        environ["PYTHONPATH"] = python_path
    program = [worker_python(), "-c", PROGRAM]
    done = subprocess.run(program, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (f"{ZIP}:/py4j.zip:/mine", "/py4j.zip:/mine"),
        (f"/mine:{ZIP}:{ZIP}:/yours:{ZIP}", "/mine:/yours"),
        (f"/another{ZIP}:{ZIP}.old", f"/another{ZIP}:{ZIP}.old"),
        ("/mine", "/mine"),
        (ZIP, ""),
        (str(Path(ZIP).resolve()), ""),
    ],
)
def test_the_zip_is_taken_off_the_path_and_nothing_else(given: str, left: str) -> None:
    assert run(given) == [left, sys.executable]


def test_a_path_that_is_not_set_stays_so() -> None:
    assert run(None) == ["None", sys.executable]


def test_where_no_script_can_be_written_the_interpreter_itself_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    assert worker_python() == sys.executable


def test_a_folder_whose_programs_are_not_run_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a home that is mounted noexec."""
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.X_OK)
    assert worker_python() == sys.executable
