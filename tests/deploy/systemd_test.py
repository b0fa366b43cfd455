"""Goal: systemd takes the unit as it is, finds it well locked up, and the command in it is ours."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runnel.cli.serve import BAD_INPUT, arguments, settings_from

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy/systemd/runnel.service"
EXPOSURE_MAX = 2.0  # of 10; an ordinary unit without any of this has 9.6
analyze = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")


def service() -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keep the case
    parser.read(UNIT)
    return dict(parser["Service"])


def test_the_command_is_one_that_we_understand() -> None:
    program, command, *flags = service()["ExecStart"].split()
    assert (Path(program).name, command) == ("runnel", "serve")
    options = arguments().parse_args(flags)
    name, _, value = service()["Environment"].partition("=")
    settings, warnings = settings_from(options, {name: value.replace("%S", "/var/lib")})
    assert settings.log_dirs == ("/var/lib/runnel",) and not warnings
    assert str(options.ready_file).startswith("%t/" + service()["RuntimeDirectory"])
    assert service()["RestartPreventExitStatus"] == str(BAD_INPUT)
    assert int(service()["TimeoutStopSec"]) * 1000 > settings.shutdown_timeout_ms + 5000
    assert int(service()["LimitNOFILE"]) > settings.max_open_files


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """With a program that exists here, which is all that is changed."""
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace("/opt/runnel/bin/runnel", sys.executable))
    return path


@analyze
def test_systemd_takes_it_without_a_word(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


@analyze
def test_it_is_locked_up_well(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = re.search(r"Overall exposure level for runnel\.service: ([\d.]+)", done.stdout)
    assert found is not None, done.stdout[-500:] + done.stderr
    assert float(found[1]) <= EXPOSURE_MAX, done.stdout
