"""A broker's metrics in a test, read by Prometheus's own parser: whatever that refuses is a bug."""

import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import NamedTuple

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

PATIENCE_S = 20.0


class Scrape(NamedTuple):
    """Samples by name and sorted labels."""

    values: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
    families: Mapping[str, tuple[str, str]]  # type and help

    def value(self, name: str, **labels: str) -> float:
        return self.values[name, tuple(sorted(labels.items()))]

    def has(self, name: str, **labels: str) -> bool:
        return (name, tuple(sorted(labels.items()))) in self.values

    def labels_of(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for found, labels in self.values if found == name]


def parsed(text: str, *, open_metrics: bool = False) -> Scrape:
    parse = open_families if open_metrics else plain_families
    families = list(parse(text))
    samples = [sample for family in families for sample in family.samples]
    values = {(each.name, tuple(sorted(each.labels.items()))): each.value for each in samples}
    assert len(values) == len(samples), "a sample is told twice"
    return Scrape(values, {each.name: (each.type, each.documentation) for each in families})


def scrape(http: str, *, open_metrics: bool = False) -> Scrape:
    accept = "application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain"
    return parsed(get(f"http://{http}/metrics", accept), open_metrics=open_metrics)


def get(url: str, accept: str = "*/*") -> str:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        text: str = response.read().decode()
        return text


def until(http: str, is_so: Callable[[Scrape], bool]) -> Scrape:
    """The first scrape of which that is true; rows are told of once a second."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = scrape(http)
        if is_so(found):
            return found
        assert time.monotonic() < deadline, f"not so in {PATIENCE_S} s"
        time.sleep(0.1)
