"""What the operating system grants a process: standard streams, and a number of open files."""

import logging
import os
import resource
from dataclasses import replace
from typing import Final

from runnel.config.settings import Settings

_log = logging.getLogger(__name__)
OWN_FILES: Final = 128  # libraries, the metadata store, listeners, index files while they are read
CONNECTIONS_MIN: Final = 100


def ensure_standard_streams() -> None:
    """A process started with 0, 1 or 2 closed would get its data files under those numbers."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:  # kept open
        pass
    os.close(fd)


def within_file_limit(settings: Settings) -> Settings:
    """Ask for as many open files as we may have; with too few, promise less rather than fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_open_files + settings.max_connections + OWN_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft >= wanted:
        return settings
    logs = max(16, min(settings.max_open_files, (soft - OWN_FILES) // 2))
    connections = max(CONNECTIONS_MIN, soft - OWN_FILES - logs)
    _log.warning(
        "only %d files may be open (ulimit -n): %d connections and %d log files are used at most",
        soft,
        min(connections, settings.max_connections),
        logs,
    )
    return replace(
        settings,
        max_open_files=logs,
        max_connections=min(connections, settings.max_connections),
    )
