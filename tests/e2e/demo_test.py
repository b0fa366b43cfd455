"""`make demo` as it is, but fast; with the Java of this machine, and without any."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.spark_declarative import path_without_java
from tests.support.process import ROOT, environment

TIMEOUT_S = 600


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("has_java", [True, False], ids=["java", "no java"])
def test_demo(has_java: bool, tmp_path: Path) -> None:
    environ = environment()
    if not has_java:
        environ["PATH"] = path_without_java(tmp_path / "bin")
        environ.pop("JAVA_HOME", None)
        assert shutil.which("java", path=environ["PATH"]) is None
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/demo"), "--fast", "--out", str(tmp_path)],
        env={**environ, "TMPDIR": str(tmp_path)},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    said = " ".join(done.stdout.split())
    assert re.search(r"orders were acknowledged: [\d,]+ are in the table", said)
    assert "Lost: 0. Twice: 0." in said
    assert re.search(r"What went wrong\? Lyon, [\d:]+ to [\d:]+: \d+ at the checkout", said)
    picture = ET.parse(tmp_path / "shop.svg").getroot()
    assert len(picture.findall("{http://www.w3.org/2000/svg}rect")) > 3 * 140
    assert not list(tmp_path.glob("runnel-*")), "it left something behind"
