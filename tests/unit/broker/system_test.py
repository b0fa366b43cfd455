"""Goal: a limit of processor time is found wherever control groups state it."""

import math
from pathlib import Path

import pytest

from runnel.broker.system import cpu_quota

V2 = "0::{}\n"
V1 = "5:devices:/\n4:cpu,cpuacct:{}\n0::/\n"


@pytest.mark.parametrize(
    ("own", "files", "cpus"),
    [
        (V2.format("/"), {"cpu.max": "150000 100000\n"}, 1.5),
        (V2.format("/"), {"cpu.max": "max 100000\n"}, math.inf),
        (V2.format("/a/b"), {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 0.5),
        (V2.format("/elsewhere"), {"cpu.max": "200000 100000"}, 2.0),
        (V2.format("/a"), {"b/cpu.max": "50000 100000"}, math.inf),
        (
            V1.format("/docker/x"),
            {
                "cpu/docker/x/cpu.cfs_quota_us": "300000\n",
                "cpu/docker/x/cpu.cfs_period_us": "100000\n",
                "cpu/cpu.cfs_quota_us": "-1\n",
            },
            3.0,
        ),
        (V1.format("/"), {"cpu/cpu.cfs_quota_us": "-1\n"}, math.inf),
        ("", {"cpu.max": "50000 100000"}, math.inf),
        ("what is this\n", {}, math.inf),
        (V2.format("/"), {"cpu.max": "what is this"}, math.inf),
    ],
)
def test_the_least_of_what_is_stated(
    tmp_path: Path, own: str, files: dict[str, str], cpus: float
) -> None:
    root = tmp_path / "cgroup"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "own").write_text(own)
    assert cpu_quota(root, tmp_path / "own") == cpus


def test_where_there_are_no_control_groups(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path, tmp_path / "own") == math.inf
