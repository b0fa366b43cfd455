"""`runnel pipeline stop`: ends a pipeline that another terminal, or a supervisor, has started."""

import os
import signal
import time
from pathlib import Path

from runnel.cli.output import EXIT_FAILED, CommandError, show_line
from runnel.cli.pipeline_files import find, light
from runnel.cli.pipeline_state import status_of

POLL_S = 0.1


def stop(given: str, state_dir: Path | None, *, force: bool, timeout_s: float) -> None:
    file = light(find(given))
    status = status_of(file, state_dir)
    if status is None or not status.is_active or status.pid is None:
        show_line(f"{file.name} is not running")
        return
    try:
        os.kill(status.pid, signal.SIGKILL if force else signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise CommandError(f"process {status.pid} belongs to another user.") from None
    deadline = time.monotonic() + timeout_s
    while status.is_alive:
        if time.monotonic() > deadline:
            raise CommandError(
                f"{file.name} is still in its batch after {timeout_s:g} s, process {status.pid}."
                " Wait, or use --force: nothing is lost, the batch is run again.",
                EXIT_FAILED,
            )
        time.sleep(POLL_S)
    after = status_of(file, state_dir)
    show_line(f"{file.name} {'killed' if force or after is None else after.state}")
