"""The reader of Prometheus text agrees with Prometheus's own, whatever the labels hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from runnel.cli.exposition import ExpositionError, labels_of, parse, without

TEXT = """\
# HELP runnel_requests_total Requests answered, by API
# TYPE runnel_requests_total counter
runnel_requests_total{api="Produce"} 12
runnel_requests_total{api="Fetch"} 3.5e3 1700000000000
# TYPE runnel_loop_lag_seconds histogram
runnel_loop_lag_seconds_bucket{le="0.001"} 4
runnel_loop_lag_seconds_bucket{le="+Inf"} 5
runnel_loop_lag_seconds_sum 0.25
runnel_loop_lag_seconds_count 5

# a remark
runnel_connections 7
"""


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def test_values_kinds_and_helps() -> None:
    scrape = parse(TEXT)
    assert scrape.of("runnel_requests_total") == {'api="Produce"': 12, 'api="Fetch"': 3500}
    assert scrape.value("runnel_connections") == 7 and scrape.value("runnel_nothing") is None
    assert scrape.total("runnel_requests_total") == 3512
    assert scrape.kinds == {
        "runnel_requests_total": "counter",
        "runnel_loop_lag_seconds": "histogram",
    }
    assert scrape.helps["runnel_requests_total"] == "Requests answered, by API"
    assert scrape.samples_of("runnel_loop_lag_seconds") == [
        f"runnel_loop_lag_seconds_{part}" for part in ("bucket", "sum", "count")
    ]


def test_what_is_not_wanted_is_left_out() -> None:
    scrape = parse(TEXT, {"runnel_connections"})
    assert list(scrape.series) == ["runnel_connections"]


@pytest.mark.parametrize("line", ["<html>", "runnel_x", 'runnel_x{a="b"}', "runnel_x many"])
def test_what_is_no_sample_is_told_with_its_line(line: str) -> None:
    with pytest.raises(ExpositionError, match="line 2"):
        parse(f"runnel_y 1\n{line}\n")


NASTY = st.text(st.sampled_from('ab \\"{},=\n}# \x1b\u2028é'), max_size=12)


@given(st.lists(st.tuples(NASTY, NASTY, st.floats(allow_nan=False)), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_agrees_with_prometheus(rows: list[tuple[str, str, float]]) -> None:
    lines = [
        f'runnel_x{{group="{escaped(one)}",topic="{escaped(other)}"}} {value!r}'
        for one, other, value in rows
    ]
    text = "# TYPE runnel_x gauge\n" + "\n".join(lines) + "\n"
    (family,) = text_string_to_metric_families(text)
    theirs = {tuple(sorted(s.labels.items())): s.value for s in family.samples}
    ours = {
        tuple(sorted(labels_of(label_text).items())): value
        for label_text, value in parse(text).of("runnel_x").items()
    }
    assert ours == theirs


def test_a_label_can_be_taken_out() -> None:
    assert without('api="a,le=\\"1\\"",le="0.5"', "le") == 'api="a,le=\\"1\\""'
    assert without('le="0.5"', "le") == ""
