"""How `runnel metrics` shows a scrape: by subject for a person, or as one document."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from runnel.cli.exposition import labels_of
from runnel.cli.figures import count_text, duration_text, seconds_text, size_text
from runnel.cli.logs import printable
from runnel.cli.rates import Distribution, Interval, distributions

PREFIX: Final = "runnel_"
SERIES_MAX: Final = 12  # of one metric, unless it is asked for by name; the rest is summed up
HISTOGRAM: Final = "histogram"
QUANTILES: Final = (0.5, 0.99)
# What a name begins with, and under which heading it is shown; the first that fits.
SUBJECTS: Final = (
    ("broker", ("build", "ready", "start_time", "process", "loop", "exporter", "metrics")),
    ("throughput", ("produced", "fetch", "cold")),
    ("requests", ("request",)),
    ("connections", ("connection",)),
    ("topics", ("topic", "partition")),
    ("groups", ("group",)),
    ("transactions", ("transaction",)),
    ("storage", ("log", "flush", "retention", "cleaner")),
)


class Line(NamedTuple):
    """One row of the table."""

    name: str  # empty: of the metric above
    labels: str
    value: str
    now: str  # what the last interval saw: a rate, or quantiles

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return (self.name, self.labels, self.value, self.now)


def chosen(families: Iterable[str], names: Sequence[str]) -> list[str]:
    """Those whose name contains one of these; all without any."""
    wanted = [name.removeprefix(PREFIX).lower() for name in names]
    return [
        family
        for family in families
        if not wanted or any(part in family.removeprefix(PREFIX) for part in wanted)
    ]


def by_subject(families: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The families under their headings, in a fixed order; what fits none comes last."""
    found: dict[str, list[str]] = {subject: [] for subject, _ in SUBJECTS}
    for family in families:
        name = family.removeprefix(PREFIX)
        fits = (subject for subject, beginnings in SUBJECTS if name.startswith(beginnings))
        found.setdefault(next(fits, "other"), []).append(family)
    return [(subject, members) for subject, members in found.items() if members]


def lines_of(interval: Interval, family: str, whole: bool) -> Iterator[Line]:
    """The rows of one metric. Many series are summed up in one row, unless `whole`."""
    rows = list(
        _histogram_rows(interval, family)
        if interval.after.kinds.get(family) == HISTOGRAM
        else _plain_rows(interval, family)
    )
    shown = family.removeprefix(PREFIX)
    if len(rows) > SERIES_MAX and not whole:
        yield _summary(interval, family, shown, len(rows))
        return
    for labels, value, now in rows:
        yield Line(shown, labels, value, now)
        shown = ""


def _summary(interval: Interval, family: str, shown: str, count: int) -> Line:
    told = f"{count:,} series"
    if interval.after.kinds.get(family) == HISTOGRAM:
        return Line(shown, told, "", "")
    if interval.after.kinds.get(family) == "counter":
        rate = interval.rate(family)
        now = "" if rate is None else f"{quantity(family, rate)}/s"
        return Line(shown, told, f"sum {quantity(family, interval.after.total(family))}", now)
    highest = max(interval.after.of(family).values())
    return Line(shown, told, f"max {quantity(family, highest)}", "")


def _plain_rows(interval: Interval, family: str) -> Iterator[tuple[str, str, str]]:
    is_counter = interval.after.kinds.get(family) == "counter"
    rates = interval.rates(family) if is_counter else {}
    for label_text, value in interval.after.of(family).items():
        rate = rates.get(label_text) if value else None  # what never was has no rate worth a look
        now = "" if rate is None else f"{quantity(family, rate)}/s"
        yield labels_shown(label_text), quantity(family, value), now


def _histogram_rows(interval: Interval, family: str) -> Iterator[tuple[str, str, str]]:
    since_start = distributions(interval.after, family)
    lately = interval.distributions(family)
    for label_text, whole in since_start.items():
        recent = lately[label_text]
        value = f"{count_text(whole.count)}, {_spread(family, whole)}".rstrip(", ")
        now = ""
        if interval.before is not None:
            now = f"{count_text(recent.count / interval.seconds)}/s, {_spread(family, recent)}"
        yield labels_shown(label_text), value, now.rstrip(", ")


def _spread(family: str, distribution: Distribution) -> str:
    texts = []
    for quantile in QUANTILES:
        found = distribution.quantile(quantile)
        if found is not None:
            texts.append(f"p{quantile * 100:g} {quantity(family, found)}")
    return " ".join(texts)


def labels_shown(label_text: str) -> str:
    pairs = (f"{name}={printable(value)}" for name, value in labels_of(label_text).items())
    return " ".join(pairs)


def quantity(family: str, value: float) -> str:
    """With the unit that the name ends with."""
    name = family.removesuffix("_total")
    if name.endswith("_bytes"):
        return size_text(value)
    if name.endswith(("_time_seconds", "_timestamp_seconds")):
        return _moment(value)
    if name.endswith("_seconds"):
        return "0 s" if value == 0 else seconds_text(value) if value < 120 else duration_text(value)
    return f"{value:,.0f}" if value == int(value) else count_text(value)


def _moment(seconds: float) -> str:
    from datetime import UTC, datetime

    if not 0 < seconds < 253_402_300_800:  # the year 10000
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat(" ").removesuffix("+00:00") + "Z"


def document(interval: Interval, families: Sequence[str], url: str) -> dict[str, object]:
    """The whole as JSON."""
    metrics = []
    for family in families:
        kind = interval.after.kinds.get(family, "untyped")
        samples = (
            _histogram_documents(interval, family)
            if kind == HISTOGRAM
            else _plain_documents(interval, family, kind == "counter")
        )
        metrics.append(
            {
                "name": family,
                "type": kind,
                "help": interval.after.helps.get(family, ""),
                "samples": list(samples),
            }
        )
    seconds = round(interval.seconds, 3) if interval.before is not None else None
    return {"url": url, "interval_seconds": seconds, "metrics": metrics}


def _plain_documents(
    interval: Interval, family: str, is_counter: bool
) -> Iterator[dict[str, object]]:
    rates = interval.rates(family) if is_counter else {}
    for label_text, value in interval.after.of(family).items():
        sample: dict[str, object] = {"labels": labels_of(label_text), "value": value}
        if label_text in rates:
            sample["per_second"] = rates[label_text]
        yield sample


def _histogram_documents(interval: Interval, family: str) -> Iterator[dict[str, object]]:
    since_start = distributions(interval.after, family)
    lately = interval.distributions(family)
    for label_text, whole in since_start.items():
        sample: dict[str, object] = {"labels": labels_of(label_text), **_described(whole)}
        if interval.before is not None:
            sample["interval"] = _described(lately[label_text])
        yield sample


def _described(distribution: Distribution) -> dict[str, object]:
    return {
        "count": distribution.count,
        "sum": distribution.total,
        **{f"p{quantile * 100:g}": distribution.quantile(quantile) for quantile in QUANTILES},
    }
