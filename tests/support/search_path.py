"""A search path on which `runnel` and `python` are ours, for what documents tell people to type."""

import os
import sys
from pathlib import Path

# What a page installs was installed before: it is only looked at, and nothing is fetched.
SCRIPTS = {
    "runnel": 'exec "{ours}" -m runnel "$@"',
    "python": 'exec "{python}" "$@"',
    "pip": 'exec "{python}" -m pip --disable-pip-version-check "$@" --no-index',
    "apt-get": 'for package; do :; done; exec dpkg -s "$package"',
    "sudo": 'exec "$@"',
}


def search_path(folder: Path, python: str = sys.executable) -> str:
    """Writes the scripts into a new folder, and puts it first; another `python` may be wanted."""
    folder.mkdir()
    for name, line in SCRIPTS.items():
        script = folder / name
        script.write_text(f"#!/bin/sh\n{line.format(python=python, ours=sys.executable)}\n")
        script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
