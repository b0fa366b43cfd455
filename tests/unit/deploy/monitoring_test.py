"""The dashboard, the alert rules and `runnel top` name only metrics that there are."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from runnel.cli import top_model
from runnel.cli.metrics_views import by_subject
from runnel.cli.rates import START_TIME
from runnel.exporter.catalogue import HISTOGRAM, METRICS, sample_names
from tests.support.process import ROOT
from tools import dashboard, dashboard_panels, document_metrics

SAMPLES = {name: metric for metric in METRICS for name in sample_names(metric)}
SELECTOR = re.compile(r"\b((?:runnel|process)_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
EVERYWHERE = {"job", "instance"}  # labels that Prometheus adds
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
RECORDED = {r["record"] for g in RULES["groups"] for r in g["rules"] if "record" in r}
ALERTS = {r["alert"]: r for g in RULES["groups"] for r in g["rules"] if "alert" in r}
TESTED = (ROOT / "tests/e2e/alerts.test.yml").read_text()


def expressions() -> Iterator[str]:
    for group in RULES["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for row in dashboard_panels.ROWS:
        for panel in row.panels:
            for query in panel.queries:
                yield query.expression
    for variable in dashboard.dashboard()["templating"]["list"]:
        yield variable.get("definition", "")


def test_every_expression_names_metrics_and_labels_that_exist() -> None:
    wrong = []
    for expression in expressions():
        for name, matchers in SELECTOR.findall(expression):
            metric = SAMPLES.get(name)
            if metric is None:
                wrong.append(f"{name}: in {expression}")
                continue
            labels = {*metric.labels, *EVERYWHERE, *(["le"] if metric.kind == HISTOGRAM else [])}
            unknown = set(MATCHER.findall(matchers)) - labels
            wrong += [f"{name} has no label {label}: in {expression}" for label in unknown]
        wrong += [
            name for name in re.findall(r"runnel:\w+:\w+", expression) if name not in RECORDED
        ]
    assert not wrong, "\n".join(wrong)


def test_the_live_view_reads_metrics_that_exist() -> None:
    assert top_model.WANTED | {START_TIME} <= SAMPLES.keys()


def test_every_metric_has_its_subject() -> None:
    subjects = dict(by_subject(metric.name for metric in METRICS))
    assert "other" not in subjects, subjects["other"]


def test_the_dashboard_is_as_generated() -> None:
    assert dashboard.TARGET.read_text() == dashboard.rendered(), "run: python -m tools.dashboard"


def test_the_page_of_metrics_is_as_generated() -> None:
    assert document_metrics.TARGET.read_text() == document_metrics.rendered(), (
        "run: python -m tools.document_metrics"
    )


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= dashboard.WIDTH
        taken |= cells


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_to_do_and_is_tested(name: str) -> None:
    rule: dict[str, Any] = ALERTS[name]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"] and len(rule["annotations"]["description"]) > 40
    assert name in TESTED, f"{name} has no case in tests/e2e/alerts.test.yml"


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("RunnelDiskNearlyFull", f"< {top_model.DISK_FREE_SHARE_MIN:.2f}"),
        ("RunnelLoopLagHigh", f"> {top_model.LOOP_LAG_P99_MAX_S:g}"),
        ("RunnelTransactionOld", f"> {top_model.TRANSACTION_OPEN_MAX_S:g}"),
    ],
)
def test_alerts_and_the_live_view_warn_of_the_same(name: str, threshold: str) -> None:
    assert ALERTS[name]["expr"].endswith(threshold)
