"""`runnel pipeline stop`: ends a pipeline that another terminal, or a supervisor, has started."""

import os
import signal
import time
from pathlib import Path

from runnel.cli.output import EXIT_FAILED, CommandError, show_line
from runnel.cli.pipeline_files import find, home_of, light

POLL_S = 0.1


def stop(given: str, state_dir: Path | None, *, force: bool, timeout_s: float) -> None:
    from runnel.pipelines import status as statuses

    file = light(find(given))
    home = home_of(file, state_dir)
    status = statuses.read(home)
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
    after = statuses.read(home)
    show_line(f"{file.name} {'killed' if force or after is None else after.state}")
