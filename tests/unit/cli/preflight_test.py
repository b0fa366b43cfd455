"""What is refused before a start changes anything; the whole of it is in refusal_test.py."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from runnel.cli.preflight import FREE_BYTES_MIN, ensure_free, ensure_usable
from runnel.config.definition import ConfigError
from runnel.config.listeners import Listener


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = FREE_BYTES_MIN // 4096
    for free, is_refused in ((0, True), (blocks - 1, True), (blocks, False)):
        room = SimpleNamespace(f_blocks=9, f_bavail=free, f_frsize=4096)
        monkeypatch.setattr(os, "statvfs", lambda _path, room=room: room)
        if is_refused:
            with pytest.raises(ConfigError, match=f"the disk of {tmp_path} is full, {free * 4096}"):
                ensure_usable(tmp_path / "new/data", "log.dirs")
        else:
            ensure_usable(tmp_path / "new/data", "log.dirs")
    assert not list(tmp_path.iterdir())


def test_rights_are_asked_of_the_nearest_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(os, "access", lambda path, _mode: asked.append(path))
    with pytest.raises(ConfigError, match=f"{tmp_path} is not writable.*choose another folder"):
        ensure_usable(tmp_path / "new/data", "log.dirs")
    assert asked == [tmp_path]


def test_an_address_that_nobody_has_is_told_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="no such address; choose another with --host"):
        ensure_free([Listener("PLAINTEXT", "PLAINTEXT", "203.0.113.1", 5)])
    with pytest.raises(ConfigError, match="check --host and --port"):
        ensure_free([Listener("PLAINTEXT", "PLAINTEXT", "nobody.invalid", 5)])
    with pytest.raises(ConfigError, match="no such address; choose another with --host"):
        ensure_free([Listener("PLAINTEXT", "PLAINTEXT", "203.0.113.1", 0)])
    ensure_free([Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)])
