"""The wheel by itself: its hot path is compiled, and the command that it brings serves."""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNNEL = Path(sys.executable).with_name("runnel")
START_TIMEOUT_S = 30.0


@pytest.mark.parametrize(
    "name", ["broker.connection", "broker.dispatch", "storage.log", "native._records", "wire._hot"]
)
def test_the_hot_path_is_compiled(name: str) -> None:
    file = importlib.import_module(f"runnel.{name}").__file__
    assert file is not None and file.endswith(".so"), file


def test_the_command_serves(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [str(RUNNEL), "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    broker = subprocess.Popen([*command, "--ready-file", str(ready)])
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready.exists() and broker.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        address = json.loads(ready.read_text())["kafka"][0]
        asked = subprocess.run(
            [str(RUNNEL), "health", "-b", address], capture_output=True, text=True, timeout=30
        )
        assert (asked.returncode, asked.stdout) == (0, f"{address} answers\n")
        broker.terminate()
        assert broker.wait(30) == 0
    finally:
        broker.kill()
        broker.wait()
