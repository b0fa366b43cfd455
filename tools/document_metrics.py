"""Write docs/metrics.md from the catalogue and the alert rules; a test fails if they disagree."""

import re
from collections.abc import Iterable
from pathlib import Path

import yaml

from runnel.cli.metrics_views import by_subject
from runnel.exporter.catalogue import BY_NAME, METRICS

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs/metrics.md"
OPENING = ROOT / "tools/metrics-opening.md"
RULES = ROOT / "deploy/prometheus/alerts.yml"

ABOUT_METRICS = """\
## Every metric

Counters start at 0 with their broker; a histogram has the samples `_bucket`, `_sum` and `_count`.
Times are in seconds and sizes in bytes, as Prometheus has it.
"""
ABOUT_ALERTS = """\
## Alerts

The rules are in [deploy/prometheus/alerts.yml](../deploy/prometheus/alerts.yml). Critical ones wake
somebody up, warnings can wait for the morning. Each is tested where it has to fire and where it
must not, and a real Prometheus sends them in `make e2e`.
"""


def table(head: str, rows: Iterable[str]) -> str:
    columns = head.count("|") + 1
    return "\n".join([f"| {head} |", "|" + "---|" * columns, *rows, ""])


def metrics_part() -> str:
    parts = [ABOUT_METRICS]
    for subject, names in by_subject(metric.name for metric in METRICS):
        rows = []
        for name in names:
            metric = BY_NAME[name]
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            rows.append(f"| `{name}` | {metric.kind} | {labels} | {metric.help} |")
        parts.append(f"### {subject.capitalize()}\n\n{table('name | kind | labels | what', rows)}")
    return "\n".join(parts)


def alerts_part() -> str:
    parts = [ABOUT_ALERTS]
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                parts.append(_alert(rule["alert"], rule))
    return "\n".join(parts)


def _alert(name: str, rule: dict[str, dict[str, str]]) -> str:
    lasting = rule.get("for")
    when = f", after {lasting}" if lasting else ""
    description = _without_templates(rule["annotations"]["description"])
    return (
        f"### {name}\n\n{rule['labels']['severity'].capitalize()}{when}:\n\n"
        f"<!-- run by make e2e -->\n```promql\n{rule['expr']}\n```\n\n{description}\n"
    )


def _without_templates(text: str) -> str:
    """`{{ $labels.group }}` as a reader would write it: GROUP."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: match[1].upper(), text)


def rendered() -> str:
    return "\n".join([OPENING.read_text(), metrics_part(), alerts_part()]).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(rendered())
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(METRICS)} metrics")
