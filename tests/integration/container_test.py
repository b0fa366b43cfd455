"""Goal: a broker started as a container starts it: by variables alone, two doors, probed, stopped.

Each door tells the address that leads back to it; that is what clients in containers and clients
outside of them both need.
"""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runnel.cli.health import main as health
from runnel.client.raw import WireClient
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.metadata import MetadataRequest
from tests.deploy.image_test import environment as image_environment
from tests.support.process import StartBroker, environment, serve_until_it_fails


def free_ports(count: int) -> list[int]:
    socks = [socket.socket() for _ in range(count)]
    for sock in socks:
        sock.bind(("127.0.0.1", 0))
    ports = [int(sock.getsockname()[1]) for sock in socks]
    for sock in socks:
        sock.close()
    return ports


def told_at(port: int) -> set[tuple[str, int]]:
    with WireClient(("127.0.0.1", port)) as client:
        brokers = client.call(MetadataRequest(topics=[])).brokers
        (coordinator,) = client.call(
            FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
        ).coordinators
        return {(each.host, each.port) for each in (*brokers, coordinator)}


def test_as_the_image_starts_it(tmp_path: Path) -> None:
    """The image's own variables; only ports and the folder are others."""
    outside, inside = free_ports(2)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(30)
    given = {
        name: text
        for name, text in image_environment().items()
        if name.startswith("RUNNEL_") and name != "RUNNEL_BOOTSTRAP_SERVER"
    } | {
        "RUNNEL_LOG_DIRS": str(tmp_path / "data"),
        "RUNNEL_LISTENERS": f"EXTERNAL://0.0.0.0:{outside},INTERNAL://0.0.0.0:{inside}",
        "RUNNEL_ADVERTISED_LISTENERS": f"EXTERNAL://localhost:{outside},INTERNAL://runnel.test:0",
        "RUNNEL_HTTP_LISTENER": "127.0.0.1:0",
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "runnel", "serve"],
        env=environment(given),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with manager:
            assert manager.recv(4096).startswith(b"READY=1\n"), "systemd is told, too"
            assert health(["-q", "-b", f"localhost:{outside}"]) == 0
            assert told_at(outside) == {("localhost", outside)}
            assert told_at(inside) == {("runnel.test", inside)}
            deadline = time.monotonic() + 15  # a resolver may take its time
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=max(1, deadline - time.monotonic()))
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0 and not errors
    lines = [json.loads(line) for line in output.splitlines()]
    assert {"ready", "stopped"} <= {word for line in lines for word in line["message"].split()}


def test_a_wrong_address_is_told_with_its_remedy(start_broker: StartBroker) -> None:
    broker = start_broker(
        arguments=("--host", "0.0.0.0"),
        settings={},
        environ={"RUNNEL_ADVERTISED_HOST": "localhost"},
    )
    deadline = time.monotonic() + 20
    while "which is themselves" not in broker.log and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "say --advertised-host NAME" in broker.log
    broker.stop()


def test_an_address_for_nobody_is_refused(tmp_path: Path) -> None:
    status, told = serve_until_it_fails(tmp_path / "data", "--advertised-host", "0.0.0.0")
    assert status == 2 and "name the host that clients know" in told


def test_health_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    assert health(["-b", f"127.0.0.1:{port}"]) == 1
    assert health(["-b", "nonsense"]) == 2
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        assert health(["-b", address, "--timeout", "0.1"]) == 1
    refused, nonsense, silent = capsys.readouterr().err.splitlines()
    assert "Connection refused" in refused and "write host:port" in nonsense
    assert "does not answer in time" in silent
    assert health(["-b", f"127.0.0.1:{port}", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["answers"] is False and "Connection refused" in answer["reason"]
