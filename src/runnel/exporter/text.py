"""Metrics as Prometheus reads them: its text format, and OpenMetrics for who asks for that.

Made in pieces, so that neither ten thousand partitions nor a slow reader take memory.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from runnel.exporter.catalogue import COUNTER, HISTOGRAM, METRICS, Metric
from runnel.exporter.reading import Snapshot
from runnel.exporter.samples import HISTOGRAMS, SAMPLES, histogram

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LINES_AT_ONCE: Final = 1000


def pieces(snapshot: Snapshot, *, open_metrics: bool) -> Iterator[str]:
    """Some lines at a time. A metric without samples is not mentioned."""
    for metric in METRICS:
        lines = _lines(snapshot, metric)
        head = _head(metric, open_metrics)
        while some := "".join(islice(lines, LINES_AT_ONCE)):
            yield head + some
            head = ""
    if open_metrics:
        yield "# EOF\n"


def _head(metric: Metric, open_metrics: bool) -> str:
    name = metric.name
    if open_metrics and metric.kind == COUNTER:
        name = name.removesuffix("_total")
    return f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"


def _lines(snapshot: Snapshot, metric: Metric) -> Iterator[str]:
    name = metric.name
    if metric.slot is not None:
        value = snapshot.slot(metric.slot)
        return iter([f"{name} {value if metric.scale == 1 else value * metric.scale!r}\n"])
    if metric.kind == HISTOGRAM:
        return (
            line
            for inner, at in HISTOGRAMS[name](snapshot)
            for line in histogram(snapshot, name, inner, at)
        )
    return (f"{name}{labels} {value!r}\n" for labels, value in SAMPLES[name](snapshot))
