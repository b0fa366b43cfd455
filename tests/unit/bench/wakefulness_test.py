"""Processors are asked to stay awake for as long as a measurement takes, where that is allowed."""

import struct
from pathlib import Path

import pytest

from bench.wakefulness import awake, told


def test_asks_for_no_latency_while_it_lasts(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.touch()
    with awake(str(device)) as was_allowed:
        assert was_allowed
        assert device.read_bytes() == struct.pack("i", 0)


def test_goes_on_without_the_device(tmp_path: Path) -> None:
    with awake(str(tmp_path / "none")) as was_allowed:
        assert not was_allowed


def test_errors_of_the_measurement_are_its_own(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="on purpose"), awake(str(tmp_path / "none")):
        raise OSError("on purpose")


def test_the_head_of_the_table_says_which(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    assert "halt" in told(str(device))
    device.touch()
    assert "kept awake" in told(str(device))
