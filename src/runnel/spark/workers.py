"""The interpreter of Spark's Python processes: this very one, and PySpark as it is installed.

Spark puts a zip of PySpark's sources first on the path of every Python process that it starts, and
Python compiles what it takes out of a zip anew each time: 0.7 to 0.9 s of processor time before a
process does anything, where the same modules in their folder take 0.15 to 0.25 s. A stream has
seven such processes before its first row; and Spark gives each 10 s to start, however busy the
machine is. So on this machine a script takes the zip off the path and then becomes the interpreter.
"""

import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import Final

from runnel.spark.scripts import script_named

_SCRIPT: Final = """#!/bin/sh
# Written by runnel.spark: Python as it is, without the zip of PySpark's sources on its path, which
# it would compile anew in every process. The same modules are installed beside it.
rest=":$PYTHONPATH:"
for zip in {zips}; do
    while case "$rest" in *":$zip:"*) true ;; *) false ;; esac; do
        rest="${{rest%%":$zip:"*}}:${{rest#*":$zip:"}}"
    done
done
rest="${{rest#:}}"
PYTHONPATH="${{rest%:}}"
exec {python} "$@"
"""


def worker_python() -> str:
    """What Spark is to start on this machine; the interpreter itself where a script cannot be."""
    found = importlib.util.find_spec("pyspark")
    if os.name != "posix" or found is None or found.origin is None:
        return sys.executable
    zipped = Path(found.origin).parent / "python" / "lib" / "pyspark.zip"
    if not zipped.is_file():
        return sys.executable
    names = dict.fromkeys([str(zipped), str(zipped.resolve())])  # Spark's scripts follow links
    script = _SCRIPT.format(zips=shlex.join(names), python=shlex.quote(sys.executable))
    program = script_named("python3", script)
    return sys.executable if program is None else str(program)
