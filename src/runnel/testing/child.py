"""`python -m runnel.testing.child SCRATCH ARGUMENTS`: `runnel serve`, which ends with its parent.

The parent holds the other end of our standard input. When that is closed while we serve, the
parent is gone without having stopped us: we stop in order and take its temporary folder with us.
"""

import os
import shutil
import signal
import sys
import threading

from runnel.cli.serve import main


class Parent:
    """Watched by a thread that waits for the end of standard input."""

    def __init__(self) -> None:
        self.is_gone = False
        threading.Thread(target=self._watch, name="runnel-parent", daemon=True).start()

    def _watch(self) -> None:
        while os.read(0, 1024):
            pass
        self.is_gone = True
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    parent = Parent()
    scratch, *arguments = sys.argv[1:]
    status = main(arguments)
    if parent.is_gone:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(status)
