"""Small programs of a Unix shell that stand between Spark and what it starts.

Each is written to the user's cache folder, in a folder named by what the script says: it never
needs a change, and two starts at once never see half of it.
"""

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)


def script_named(name: str, script: str) -> Path | None:
    """`bin/NAME` of a folder of its own; None where no folder can be written."""
    digest = hashlib.sha256(script.encode()).hexdigest()[:16]
    for cache in _cache_folders():
        program = cache / f"{name}-{digest}" / "bin" / name
        try:
            _write_once(program, script)
        except OSError as error:
            log.debug("cannot use %s: %s", cache, error)
            continue
        return program
    return None


def _cache_folders() -> Iterator[Path]:
    """Those of this user; a container may have no home that can be written."""
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runnel"
    yield Path(tempfile.gettempdir()) / f"runnel-{os.getuid()}"


def _write_once(program: Path, script: str) -> None:
    """Renamed into place: another process may be starting Spark at the same moment."""
    cache = program.parents[2]
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    if cache.stat().st_uid != os.getuid():
        raise PermissionError(f"{cache} belongs to somebody else")
    if program.is_file() and os.access(program, os.X_OK) and program.read_text() == script:
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=program.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    Path(name).chmod(0o755)
    Path(name).replace(program)
    if not os.access(program, os.X_OK):
        raise PermissionError(f"programs of {cache} are not run: it is mounted noexec")
