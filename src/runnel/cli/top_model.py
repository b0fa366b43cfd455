"""From scrapes to what `runnel top` shows: fed with scrapes and times, it asks nobody."""

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from runnel.cli.exposition import Scrape, labels_of
from runnel.cli.figures import duration_text, seconds_text, size_text
from runnel.cli.rates import START_TIME, Distribution, Interval, by_label
from runnel.cli.top_frame import ApiRow, FolderRow, Frame, GroupRow, TopicOrder, TopicRow

HISTORY: Final = 60  # points of a sparkline
LAG_WINDOW_S: Final = 60.0  # a lag that rises for so long is growing
# From where on something is worth a warning; the alert rules in deploy/prometheus say the same.
DISK_FREE_SHARE_MIN: Final = 0.10
LOOP_LAG_P99_MAX_S: Final = 0.25
TRANSACTION_OPEN_MAX_S: Final = 900.0

# An id is told with the state of its last transaction; all others have ended.
UNDER_WAY: Final = ("Ongoing", "Prepare")

PRODUCED: Final = "runnel_produced_bytes_total"
FETCHED: Final = "runnel_fetched_bytes_total"
RECORDS: Final = "runnel_produced_records_total"
BATCHES: Final = "runnel_produced_batches_total"
REQUESTS: Final = "runnel_requests_total"
REQUEST_SECONDS: Final = "runnel_request_seconds"
ERRORS: Final = "runnel_request_errors_total"
CONNECTIONS: Final = "runnel_connections"
ACCEPTED: Final = "runnel_connections_accepted_total"
REFUSED: Final = "runnel_connections_refused_total"
LOOP_LAG: Final = "runnel_loop_lag_seconds"
CPU: Final = "process_cpu_seconds_total"
MEMORY: Final = "process_resident_memory_bytes"
BUILD: Final = "runnel_build_info"
READY: Final = "runnel_ready"
TOPIC_BYTES: Final = "runnel_topic_bytes"
TOPIC_PARTITIONS: Final = "runnel_topic_partitions"
LOG_END: Final = "runnel_partition_log_end_offset"
GROUP_LAG: Final = "runnel_group_lag"
GROUP_MEMBERS: Final = "runnel_group_members"
GROUPS: Final = "runnel_groups"
TRANSACTIONS: Final = "runnel_transactions"
TRANSACTION_OLDEST: Final = "runnel_transaction_oldest_seconds"
LOG_DIR: Final = "runnel_log_dir_bytes"
OFFLINE: Final = "runnel_logs_offline"
UNCLEANABLE: Final = "runnel_cleaner_uncleanable_logs"

HISTOGRAMS: Final = (REQUEST_SECONDS, LOOP_LAG)
PLAIN: Final = (
    *(
        START_TIME,
        PRODUCED,
        FETCHED,
        RECORDS,
        BATCHES,
        REQUESTS,
        ERRORS,
        CONNECTIONS,
        ACCEPTED,
        REFUSED,
    ),
    *(CPU, MEMORY, BUILD, READY, TOPIC_BYTES, TOPIC_PARTITIONS, LOG_END, GROUP_LAG, GROUP_MEMBERS),
    *(GROUPS, TRANSACTIONS, TRANSACTION_OLDEST, LOG_DIR, OFFLINE, UNCLEANABLE),
)
WANTED: Final = frozenset(PLAIN) | {
    f"{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum", "count")
}


class TopModel:
    """Call `observe` with each scrape; `frame` is then what to show."""

    def __init__(self) -> None:
        self._before: Scrape | None = None
        self._observed_at_s = 0.0
        self._interval: Interval | None = None
        self._in: deque[float] = deque(maxlen=HISTORY)
        self._out: deque[float] = deque(maxlen=HISTORY)
        self._requests: deque[float] = deque(maxlen=HISTORY)
        self._lags: deque[tuple[float, Mapping[str, float]]] = deque()

    def observe(self, scrape: Scrape, now_s: float) -> None:
        interval = Interval(self._before, scrape, now_s - self._observed_at_s)
        self._before, self._observed_at_s, self._interval = scrape, now_s, interval
        for history, name in (
            (self._in, PRODUCED),
            (self._out, FETCHED),
            (self._requests, REQUESTS),
        ):
            rate = interval.rate(name)
            if rate is not None:
                history.append(rate)
        if interval.before is None:
            self._lags.clear()
        self._lags.append((now_s, by_label(scrape.of(GROUP_LAG), "group")))
        # One older than the window stays, so that the window is always covered.
        while len(self._lags) > 1 and now_s - self._lags[1][0] >= LAG_WINDOW_S:
            self._lags.popleft()

    def frame(self, wall_s: float, order: TopicOrder = TopicOrder.WRITTEN) -> Frame:
        """What is known now; `wall_s` is the time of day, for ages."""
        span = self._interval
        if span is None:
            return Frame()
        scrape = span.after
        started_s = scrape.value(START_TIME)
        lag_p50, lag_p99 = _quantiles(span.distributions(LOOP_LAG).get(""))
        frame = Frame(
            version=_built(scrape, "version"),
            broker=_built(scrape, "broker"),
            up_s=None if started_s is None else max(0.0, wall_s - started_s),
            ready=scrape.value(READY) != 0,
            in_rate=span.rate(PRODUCED),
            out_rate=span.rate(FETCHED),
            records_rate=span.rate(RECORDS),
            batches_rate=span.rate(BATCHES),
            requests_rate=span.rate(REQUESTS),
            errors_rate=span.rate(ERRORS),
            in_history=list(self._in),
            out_history=list(self._out),
            requests_history=list(self._requests),
            apis=_apis(span),
            errors=_largest(by_label(span.rates(ERRORS), "error")),
            connections=scrape.value(CONNECTIONS),
            accepted_rate=span.rate(ACCEPTED),
            loop_lag_p50_s=lag_p50,
            loop_lag_p99_s=lag_p99,
            cpu_share=span.rate(CPU),
            memory_bytes=scrape.value(MEMORY),
            topics=_topics(span, order),
            groups=_groups(span),
            group_states=_states(scrape, GROUPS),
            transaction_states=[
                (state, count)
                for state, count in _states(scrape, TRANSACTIONS)
                if state.startswith(UNDER_WAY)
            ],
            oldest_transaction_s=scrape.value(TRANSACTION_OLDEST),
            folders=_folders(scrape),
        )
        frame.warnings = [*_warnings(frame, span), *self._growing()]
        return frame

    def _growing(self) -> list[str]:
        """Groups whose lag has risen all through the window."""
        if not self._lags or self._lags[-1][0] - self._lags[0][0] < LAG_WINDOW_S:
            return []
        found = []
        for group, lag in self._lags[-1][1].items():
            seen = [lags.get(group, 0.0) for _, lags in self._lags]
            if lag > seen[0] and all(now >= then for then, now in pairwise(seen)):
                span_s = self._lags[-1][0] - self._lags[0][0]
                found.append(
                    f"group {group} falls behind: {lag - seen[0]:,.0f} records more to read than"
                    f" {duration_text(span_s)} ago"
                )
        return found


def _quantiles(distribution: Distribution | None) -> tuple[float | None, float | None]:
    if distribution is None:
        return None, None
    return distribution.quantile(0.5), distribution.quantile(0.99)


def _built(scrape: Scrape, label: str) -> str:
    for label_text in scrape.of(BUILD):
        return labels_of(label_text).get(label, "")
    return ""


def _apis(span: Interval) -> list[ApiRow]:
    """The APIs that were called in the interval, the busiest first."""
    times = {
        labels_of(label_text).get("api", ""): distribution
        for label_text, distribution in span.distributions(REQUEST_SECONDS).items()
    }
    rates = by_label(span.rates(REQUESTS), "api")
    rows = [ApiRow(api, rate, *_quantiles(times.get(api))) for api, rate in rates.items() if rate]
    return sorted(rows, key=lambda row: (-row.rate, row.api))


def _topics(span: Interval, order: TopicOrder) -> list[TopicRow]:
    records = by_label(span.rates(LOG_END), "topic")
    then = by_label(span.before.of(TOPIC_BYTES), "topic") if span.before is not None else {}
    partitions = by_label(span.after.of(TOPIC_PARTITIONS), "topic")
    rows = [
        TopicRow(
            topic,
            records.get(topic),
            (size - then.get(topic, size)) / span.seconds if span.before is not None else None,
            size,
            int(partitions.get(topic, 0)),
        )
        for topic, size in by_label(span.after.of(TOPIC_BYTES), "topic").items()
    ]

    def rank(row: TopicRow) -> float:
        match order:
            case TopicOrder.WRITTEN:
                return -(row.records_rate or 0.0)
            case TopicOrder.SIZE:
                return -row.size_bytes
            case TopicOrder.PARTITIONS:
                return -row.partitions
            case TopicOrder.NAME:
                return 0.0

    return sorted(rows, key=lambda row: (rank(row), row.topic))


def _groups(span: Interval) -> list[GroupRow]:
    """The furthest behind first."""
    lags = by_label(span.after.of(GROUP_LAG), "group")
    then = by_label(span.before.of(GROUP_LAG), "group") if span.before is not None else {}
    members = by_label(span.after.of(GROUP_MEMBERS), "group")
    rows = [
        GroupRow(
            group,
            lags.get(group, 0.0),
            (lags.get(group, 0.0) - then[group]) / span.seconds if group in then else None,
            int(members[group]) if group in members else None,
        )
        for group in {**lags, **members}
    ]
    return sorted(rows, key=lambda row: (-row.lag, row.group))


def _states(scrape: Scrape, name: str) -> list[tuple[str, int]]:
    """How many are in each state that somebody is in."""
    counts = by_label(scrape.of(name), "state")
    return [(state, int(count)) for state, count in sorted(counts.items()) if count]


def _largest(rates: Mapping[str, float]) -> list[tuple[str, float]]:
    found = [(name, rate) for name, rate in rates.items() if rate]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def _folders(scrape: Scrape) -> list[FolderRow]:
    kinds: dict[str, dict[str, float]] = {}
    for label_text, value in scrape.of(LOG_DIR).items():
        labels = labels_of(label_text)
        kinds.setdefault(labels.get("dir", ""), {})[labels.get("kind", "")] = value
    return [
        FolderRow(folder, found.get("total", 0.0), found.get("free", 0.0), found.get("used"))
        for folder, found in sorted(kinds.items())
    ]


def _warnings(frame: Frame, span: Interval) -> list[str]:
    """What an operator should look at, the worst first."""
    found = []
    if offline := int(span.after.value(OFFLINE) or 0):
        found.append(f"{offline} logs are offline: the broker's log says why")
    if not frame.ready:
        found.append("the broker is not ready: it starts or stops")
    for folder in frame.folders:
        if folder.free_share < DISK_FREE_SHARE_MIN:
            free, share = size_text(folder.free_bytes), f"{folder.free_share:.0%}"
            found.append(f"{folder.folder}: only {free} ({share}) of the disk is free")
    if frame.loop_lag_p99_s is not None and frame.loop_lag_p99_s > LOOP_LAG_P99_MAX_S:
        found.append(f"the loop is late by up to {seconds_text(frame.loop_lag_p99_s)}: overloaded?")
    if uncleanable := int(span.after.total(UNCLEANABLE)):
        found.append(f"{uncleanable} logs cannot be compacted: the broker's log says why")
    if (frame.oldest_transaction_s or 0.0) > TRANSACTION_OPEN_MAX_S:
        age = duration_text(frame.oldest_transaction_s or 0.0)
        found.append(f"a transaction is open for {age}: see 'runnel transaction find-hanging'")
    if refused := span.rate(REFUSED):
        found.append(f"{refused:.1f} connections a second are refused: see max.connections")
    return found
