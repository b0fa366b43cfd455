"""The list of metrics: Prometheus's conventions, and nothing twice."""

import re

from runnel.exporter.catalogue import BY_NAME, COUNTER, METRICS
from runnel.exporter.layout import SLOT_COUNT, Slot


def test_every_metric_has_a_name_of_its_own_and_a_help() -> None:
    assert len(BY_NAME) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"(runnel|process)(_[a-z]+)+", metric.name), metric.name
        assert len(metric.help) > 5 and "\n" not in metric.help and "\\" not in metric.help


def test_names_tell_the_kind_and_the_unit() -> None:
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == COUNTER), metric.name
        assert not re.search(r"_(ms|milliseconds|us|kb|mb|percent)(_|$)", metric.name), metric.name


def test_no_number_is_told_under_two_names() -> None:
    slots = [metric.slot for metric in METRICS if metric.slot is not None]
    assert len(slots) == len(set(slots))
    assert max(Slot) < SLOT_COUNT
