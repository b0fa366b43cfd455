"""The `runnel` command as a user types it, in a process of its own, against one broker."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from runnel.cli.app import main
from tests.support.process import environment

TIMEOUT_S = 60.0
SERVER = "RUNNEL_BOOTSTRAP_SERVER"


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line of the output."""
        (line,) = self.out.splitlines()
        return line

    @property
    def json(self) -> Any:  # noqa: ANN401  # whatever the command printed
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Runnel:
    """Call it with the arguments of a command that must succeed; `inside` takes any status.

    These run the command in this process, several times faster than `process` does.
    """

    def __init__(self, bootstrap: str, cwd: Path | None = None) -> None:
        self.bootstrap = bootstrap
        self._cwd = cwd

    def __call__(self, *arguments: str, stdin: str = "") -> Done:
        done = self.inside(*arguments, stdin=stdin)
        assert done.status == 0, (arguments, done)
        return done

    def inside(self, *arguments: str, stdin: str = "") -> Done:
        out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
        before = sys.stdin
        os.environ[SERVER] = self.bootstrap
        try:
            with TemporaryFile("w+") as sys.stdin, redirect_stdout(out), redirect_stderr(err):
                sys.stdin.write(stdin)
                sys.stdin.seek(0)
                status = main(arguments)
        finally:
            sys.stdin = before
            del os.environ[SERVER]
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Done(status, *texts)

    def process(
        self, *arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None
    ) -> Done:
        done = subprocess.run(
            command(*arguments),
            input=stdin,
            env=self.environment(environ),
            cwd=self._cwd,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return environment({SERVER: self.bootstrap, **(extra or {})})


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "runnel", *arguments]
