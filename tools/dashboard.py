"""Write the Grafana dashboard; a unit test fails while the file and this disagree.

What is on it stands in `tools/dashboard_panels.py`.
"""

import json
from pathlib import Path
from typing import Any

from tools.dashboard_panels import ROWS, Panel, Query

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "deploy/grafana/dashboards/runnel.json"
WIDTH = 24  # of Grafana's grid
STAT_HEIGHT, GRAPH_HEIGHT = 4, 8
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def target(query: Query, letter: str) -> dict[str, Any]:
    return {
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "range": True,
        "refId": letter,
    }


def field_options(panel: Panel) -> dict[str, Any]:
    steps = panel.thresholds or (("green", 0.0),)
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {
            "mode": "absolute",
            "steps": [
                {"color": colour, "value": value if at else None}
                for at, (colour, value) in enumerate(steps)
            ],
        },
    }
    if panel.kind == "timeseries":
        defaults["custom"] = {"fillOpacity": 8, "showPoints": "never", "lineWidth": 1}
    return {"defaults": defaults, "overrides": []}


def options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        return {
            "colorMode": "value" if panel.thresholds else "none",
            "graphMode": "area",
            "reduceOptions": {"calcs": ["lastNotNull"]},
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def drawn(panel: Panel, number: int, place: tuple[int, int, int, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": SOURCE,
        "gridPos": dict(zip("xywh", place, strict=True)),
        "fieldConfig": field_options(panel),
        "options": options(panel),
        "targets": [target(query, chr(ord("A") + at)) for at, query in enumerate(panel.queries)],
    }


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    y = 0
    for row in ROWS:
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        found.append(
            {"id": len(found) + 1, "type": "row", "title": row.title, "collapsed": False,
             "gridPos": place, "panels": []}
        )  # fmt: skip
        y += 1
        x = 0
        graphs = row.panels[0].kind != "stat"
        width = WIDTH // (4 if len(row.panels) == 4 else 3) if graphs else WIDTH // len(row.panels)
        height = STAT_HEIGHT if not graphs else GRAPH_HEIGHT
        for panel in row.panels:
            if x + width > WIDTH:
                x, y = 0, y + height
            found.append(drawn(panel, len(found) + 1, (x, y, width, height)))
            x += width
        y += height
    return found


def variable(name: str, metric: str) -> dict[str, Any]:
    query = f"label_values({metric}, {name})"
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "multi": True,
        "includeAll": True,
        # All brokers are named one by one, so that other jobs' process_* do not count with them.
        "allValue": None if name == "instance" else ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 1,
    }


def dashboard() -> dict[str, Any]:
    source = {
        "name": "datasource",
        "type": "datasource",
        "query": "prometheus",
        "label": "Prometheus",
    }
    return {
        "uid": "runnel",
        "title": "Runnel",
        "description": "Brokers, requests, topics, groups and disks. Made by tools/dashboard.py.",
        "tags": ["runnel", "kafka"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                source,
                variable("instance", "runnel_ready"),
                variable("topic", "runnel_topic_bytes"),
                variable("group", "runnel_group_members"),
            ]
        },
        "annotations": {"list": []},
        "panels": panels(),
    }


def rendered() -> str:
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(rendered())
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(panels())} panels")
