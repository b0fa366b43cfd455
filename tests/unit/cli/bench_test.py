"""The arguments of `runnel bench`, and how a figure is shown."""

import argparse

import pytest

from runnel.bench.suite import Line
from runnel.cli.bench import address_of, arguments, shown


def test_addresses() -> None:
    assert address_of("broker:9092") == ("broker", 9092)
    assert address_of("[::1]:9092") == ("::1", 9092)
    assert address_of("one:9092, two:9092") == ("one", 9092)
    for wrong in ("broker", ":9092", "broker:kafka"):
        with pytest.raises(argparse.ArgumentTypeError):
            address_of(wrong)


def test_nothing_is_measured_zero_times(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments().parse_args(["--samples", "0"])
    assert "at least 1" in capsys.readouterr().err


def test_a_line_has_its_figure_and_unit() -> None:
    rate = shown(Line("fetch", "MB/s", 1234.5, 0.5))
    assert rate.split() == ["fetch", "1,234", "MB/s", "load", "generator", "50%", "busy"]
    assert shown(Line("p99", "us", 99.44)).split() == ["p99", "99.4", "us"]
