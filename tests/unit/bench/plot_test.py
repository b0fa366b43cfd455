"""The picture is well-formed, and a better figure has a longer bar to the right."""

import xml.etree.ElementTree as ElementTree

import pytest

from bench.plot import Axis, bars, svg

RUN = {
    "kind": "run",
    "targets": ["kafka", "runnel os"],
    "machine": {"cores": 2, "processor": "A & B"},
    "rounds": 5,
    "commit": "abc",
    "utc": "now",
}


def verdict(label: str, compared: float, **more: object) -> dict[str, object]:
    line = {"kind": "verdict", "label": label, "compared": compared, "by": "value"}
    bounds = {"at_least": True, "must": 1.2, "aim": 1.5, "met": compared >= 1.2}
    return {**line, **bounds, "aim_met": compared >= 1.5, **more}


LINES = [
    RUN,
    verdict("fast <1 KiB>", 2.0),
    verdict("slow", 0.5),
    verdict("latency", 0.25, at_least=False, must=0.5, aim=None, met=True, aim_met=True),
    verdict("idle", 0.5, at_least=False, must=1.0, aim=0.2, by="amount", met=True, aim_met=False),
]


def test_all_bars_read_the_same_way() -> None:
    fast, slow, latency, idle = bars(LINES)
    assert (fast.better, fast.must, fast.aim, fast.verdict) == (2.0, 1.2, 1.5, "aim")
    assert (slow.better, slow.verdict) == (0.5, "missed")
    assert (latency.better, latency.must, latency.aim) == (4.0, 2.0, None)
    assert (idle.better, idle.must, idle.aim, idle.verdict) == (2.0, 1.0, 5.0, "met")
    axis = Axis([fast, slow, latency, idle])
    assert axis.x(slow.better) < axis.x(1.0) < axis.x(fast.better) < axis.x(latency.better)


def test_the_picture_is_well_formed() -> None:
    root = ElementTree.fromstring(svg(LINES))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}rect")) == 4
    texts = [text.text for text in root.iter(f"{space}text")]
    assert "fast <1 KiB>" in texts
    assert "runnel os beside kafka" in texts


def test_a_run_without_goals_has_no_picture() -> None:
    with pytest.raises(ValueError, match="no goal"):
        svg([RUN])


def test_runnel_against_itself_is_held_against_what_is_allowed() -> None:
    grown = verdict("memory: own ratio", 10.0, at_least=False, must=12.0, aim=None, by="itself")
    (bar,) = bars([RUN, grown])
    assert (bar.label, bar.figure, bar.must) == ("memory: own ratio (1 = 12x)", "10x", 1.0)
    assert bar.better == 1.2
