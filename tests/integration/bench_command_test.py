"""`runnel bench` against a running broker: every figure, and no topic left behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runnel.client.raw import WireClient
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.process import BrokerProcess, environment

SMALL = ("--seconds", "0.2", "--megabytes", "20", "--samples", "50")
LINES = 11


def bench(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runnel", "bench", "--bootstrap-server", address, *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_it_measures_and_cleans_up(tmp_path: Path, as_json: bool) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        done = bench(broker.bootstrap, *SMALL, *(["--json"] if as_json else []))
        with WireClient(broker.address) as client:
            left = client.call(MetadataRequest(topics=None)).topics
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == LINES
    if as_json:
        rows = [json.loads(line) for line in lines]
        assert len({row["measure"] for row in rows}) == LINES
        assert all(row["value"] > 0 for row in rows)
    else:
        assert lines[0].startswith("produce 1 KiB, 1 connection") and "MB/s" in lines[0]
    assert left == []


def test_a_broker_that_is_not_there_is_told_in_one_line() -> None:
    done = bench("127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.startswith("runnel: 127.0.0.1:1: ")
    assert done.stderr.count("\n") == 1
