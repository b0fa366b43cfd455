"""Goal: systemd hears of a start's progress, its end and the stop, and a deaf one does no harm."""

import socket
from pathlib import Path

import pytest

from runnel.cli import notify


def test_one_datagram_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        notify.opening(3, 10)
        notify.ready(["127.0.0.1:9092"])
        notify.stopping()
        told = [manager.recv(4096).decode().splitlines() for _ in range(3)]
    assert told[0] == ["EXTEND_TIMEOUT_USEC=60000000", "STATUS=opening logs: 3 of 10"]
    assert told[1] == ["READY=1", "STATUS=ready on 127.0.0.1:9092"]
    assert told[2][0] == "STOPPING=1"


def test_an_abstract_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = f"runnel-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        notify.ready([])
        assert manager.recv(4096).startswith(b"READY=1")


@pytest.mark.parametrize("path", ["", "/no/such/socket", "vsock:2:1", "@no-such-name"])
def test_nobody_listens(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    notify.ready(["127.0.0.1:9092"])
