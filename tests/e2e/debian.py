"""Prometheus as Debian packages it, unpacked below build/ so that no service is installed."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.process import ROOT

FOLDER = ROOT / "build/e2e"
DOWNLOAD_TIMEOUT_S = 300.0


class Tools(NamedTuple):
    prometheus: Path
    promtool: Path


def prometheus_tools() -> Tools:
    """Those on the search path, else Debian's: downloaded once."""
    found = [shutil.which(name) for name in Tools._fields]
    if all(found):
        return Tools(*(Path(str(path)) for path in found))
    unpacked = FOLDER / "prometheus"
    tools = Tools(*(unpacked / "usr/bin" / name for name in Tools._fields))
    if not all(path.exists() for path in tools):
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise RuntimeError("needs prometheus and promtool on the PATH, or Debian's apt-get")
        _download(unpacked)
    return tools


def _download(unpacked: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not _apt("download", "prometheus") and os.geteuid() == 0:
        _apt("update", "-q")  # a fresh machine has no lists yet
        _apt("download", "prometheus")
    packages = sorted(FOLDER.glob("prometheus_*.deb"))
    if not packages:
        raise RuntimeError("'apt-get download prometheus' brought nothing; try 'apt-get update'")
    draft = unpacked.with_name("prometheus.partial")
    shutil.rmtree(draft, ignore_errors=True)
    subprocess.run(["dpkg", "-x", str(packages[-1]), str(draft)], check=True)
    shutil.rmtree(unpacked, ignore_errors=True)
    draft.rename(unpacked)


def _apt(*arguments: str) -> bool:
    done = subprocess.run(["apt-get", *arguments], cwd=FOLDER, timeout=DOWNLOAD_TIMEOUT_S)
    return done.returncode == 0
