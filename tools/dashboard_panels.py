"""What is on the Grafana dashboard: rows of panels, each with its unit and its expressions.

Which metrics there are is in `runnel.exporter.catalogue`; a test looks that no other is named.
`tools/dashboard.py` makes Grafana's file of this.
"""

from typing import NamedTuple

ON = 'instance=~"$instance"'
OF_TOPIC = f'{ON}, topic=~"$topic"'
OF_GROUP = f'{ON}, group=~"$group"'
WINDOW = "$__rate_interval"


class Query(NamedTuple):
    expression: str
    legend: str = ""


class Panel(NamedTuple):
    title: str
    unit: str
    queries: tuple[Query, ...]
    help: str = ""
    kind: str = "timeseries"
    thresholds: tuple[tuple[str, float], ...] = ()  # (colour, from this value on)


class Row(NamedTuple):
    title: str
    panels: tuple[Panel, ...]


def rate(metric: str, by: str = "", matchers: str = ON) -> str:
    inner = f"rate({metric}{{{matchers}}}[{WINDOW}])"
    return f"sum by ({by}) ({inner})" if by else f"sum({inner})"


def quantile(share: float, histogram: str, by: str = "", matchers: str = ON) -> str:
    labels = f"le, {by}" if by else "le"
    inner = f"rate({histogram}_bucket{{{matchers}}}[{WINDOW}])"
    return f"histogram_quantile({share:g}, sum by ({labels}) ({inner}))"


def total(metric: str, by: str = "", matchers: str = ON) -> str:
    return f"sum by ({by}) ({metric}{{{matchers}}})" if by else f"sum({metric}{{{matchers}}})"


def stat(
    title: str, unit: str, expression: str, *thresholds: tuple[str, float], help_: str = ""
) -> Panel:
    return Panel(title, unit, (Query(expression),), help_, "stat", thresholds)


def graph(title: str, unit: str, *queries: tuple[str, str], help_: str = "") -> Panel:
    return Panel(title, unit, tuple(Query(*query) for query in queries), help_)


FREE = (
    f'runnel_log_dir_bytes{{{ON}, kind="free"}}'
    f' / ignoring (kind) runnel_log_dir_bytes{{{ON}, kind="total"}}'
)
ROWS = (
    Row(
        "Now",
        (
            stat("Brokers ready", "none", total("runnel_ready"), ("red", 0), ("green", 1)),
            stat("In", "Bps", rate("runnel_produced_bytes_total")),
            stat("Out", "Bps", rate("runnel_fetched_bytes_total")),
            stat("Requests", "reqps", rate("runnel_requests_total")),
            stat("Clients", "none", total("runnel_connections")),
            stat("Largest lag", "short", f"max(sum by (group) (runnel_group_lag{{{ON}}}))"),
            stat(
                "Disk free", "percentunit", f"min({FREE})",
                ("red", 0), ("orange", 0.1), ("green", 0.2),
            ),
            stat("Logs offline", "none", total("runnel_logs_offline"), ("green", 0), ("red", 1)),
        ),
    ),
    Row(
        "Throughput",
        (
            graph(
                "Bytes", "Bps",
                (rate("runnel_produced_bytes_total"), "in"),
                (rate("runnel_fetched_bytes_total"), "out"),
            ),
            graph(
                "Records and batches in", "short",
                (rate("runnel_produced_records_total"), "records/s"),
                (rate("runnel_produced_batches_total"), "batches/s"),
                help_="Few records to a batch cost most: raise linger.ms of the producers.",
            ),
            graph(
                "Records in, by topic", "short",
                (
                    "topk(10, sum by (topic)"
                    f" (rate(runnel_partition_log_end_offset{{{OF_TOPIC}}}[{WINDOW}])))",
                    "{{topic}}",
                ),
            ),
        ),
    ),
    Row(
        "Requests",
        (
            graph("Requests", "reqps", (rate("runnel_requests_total", "api"), "{{api}}")),
            graph(
                "Request time, p50", "s",
                (quantile(0.5, "runnel_request_seconds", "api"), "{{api}}"),
                help_="A fetch that waits for data is as long as its fetch.max.wait.ms.",
            ),
            graph(
                "Request time, p99", "s",
                (quantile(0.99, "runnel_request_seconds", "api"), "{{api}}"),
            ),
            graph("Errors", "ops", (rate("runnel_request_errors_total", "error"), "{{error}}")),
            graph(
                "Refused and throttled", "ops",
                (rate("runnel_requests_malformed_total"), "malformed requests"),
                (rate("runnel_requests_failed_total"), "failed requests (a bug)"),
                (rate("runnel_requests_throttled_total"), "throttled requests"),
                (rate("runnel_connections_refused_total"), "refused connections"),
                (rate("runnel_connections_throttled_total"), "throttled connections"),
            ),
            graph(
                "Connections", "short",
                (total("runnel_connections", "instance"), "{{instance}}"),
                (rate("runnel_connections_accepted_total"), "new a second"),
                (total("runnel_requests_parked"), "waiting requests"),
            ),
        ),
    ),
    Row(
        "Groups",
        (
            graph(
                "Lag", "short",
                (f"topk(20, sum by (group, topic) (runnel_group_lag{{{OF_GROUP}}}))",
                 "{{group}} {{topic}}"),
            ),
            graph(
                "Reading", "short",
                (f"topk(20, sum by (group, topic) (rate(runnel_group_committed_offset{{{OF_GROUP}}}"
                 f"[{WINDOW}])))", "{{group}} {{topic}}"),
                help_="Records a second by which committed offsets rise.",
            ),
            graph(
                "Time behind", "s",
                (f"sum by (group) (runnel_group_lag{{{OF_GROUP}}})"
                 f" / (sum by (group) (rate(runnel_group_committed_offset{{{OF_GROUP}}}[5m])) > 0)",
                 "{{group}}"),
                help_="How long reading the lag takes at the speed of the last minutes.",
            ),
            graph(
                "Groups", "none",
                (total("runnel_groups", "protocol, state"), "{{protocol}} {{state}}"),
            ),
            graph(
                "Members", "none",
                (total("runnel_group_members", "group", OF_GROUP), "{{group}}"),
            ),
            graph(
                "Rebalances", "none",
                (f"sum by (group) (increase(runnel_group_rebalances_total{{{OF_GROUP}}}[5m]))",
                 "{{group}}"),
                help_="In five minutes. One for each member that starts or stops is right.",
            ),
        ),
    ),
    Row(
        "Topics and storage",
        (
            graph(
                "Largest topics", "bytes",
                (f"topk(10, sum by (topic) (runnel_topic_bytes{{{OF_TOPIC}}}))", "{{topic}}"),
            ),
            graph(
                "Oldest record", "s",
                ("topk(10, time() - min by (topic)"
                 f" (runnel_partition_oldest_record_timestamp_seconds{{{OF_TOPIC}}} > 0))",
                 "{{topic}}"),
                help_="Its age; retention takes whole segments, so some beyond retention.ms.",
            ),
            graph("Disk free", "percentunit", (FREE, "{{instance}} {{dir}}")),
            graph(
                "Retention and compaction", "Bps",
                (rate("runnel_retention_deleted_bytes_total"), "deleted by retention"),
                (rate("runnel_cleaner_read_bytes_total"), "read by compaction"),
                (rate("runnel_cleaner_written_bytes_total"), "written by compaction"),
            ),
            graph(
                "Compaction due", "percentunit",
                (f"max by (instance) (runnel_cleaner_dirty_ratio_max{{{ON}}})", "{{instance}}"),
                help_="Of the log that needs it most: which part was never compacted.",
            ),
            graph(
                "Partitions", "none",
                (total("runnel_partitions_led", "instance"), "led by {{instance}}"),
                (total("runnel_partitions", "instance"), "on {{instance}}"),
                (total("runnel_logs_offline", "instance"), "offline on {{instance}}"),
                (total("runnel_cleaner_uncleanable_logs", "instance"), "stuck on {{instance}}"),
            ),
        ),
    ),
    Row(
        "Transactions and disk",
        (
            graph("Transactions", "none", (total("runnel_transactions", "state"), "{{state}}")),
            graph(
                "Oldest open transaction", "s",
                (f"max by (instance) (runnel_transaction_oldest_seconds{{{ON}}})", "{{instance}}"),
            ),
            graph(
                "Flushes", "s",
                (quantile(0.5, "runnel_flush_seconds"), "p50"),
                (quantile(0.99, "runnel_flush_seconds"), "p99"),
                help_="How long a round of fsync takes.",
            ),
        ),
    ),
    Row(
        "The broker itself",
        (
            graph(
                "Loop lag", "s",
                (quantile(0.5, "runnel_loop_lag_seconds", "instance"), "p50 {{instance}}"),
                (quantile(0.99, "runnel_loop_lag_seconds", "instance"), "p99 {{instance}}"),
                help_="How late the loop runs what is due. Above some ms everybody waits.",
            ),
            graph(
                "CPU", "percentunit",
                (f"rate(process_cpu_seconds_total{{{ON}}}[{WINDOW}])", "{{instance}}"),
                (rate("runnel_exporter_cpu_seconds_total"), "exporters"),
                help_="1 is one core; the broker's loop uses at most one.",
            ),
            graph(
                "Memory", "bytes",
                (f"process_resident_memory_bytes{{{ON}}}", "{{instance}}"),
                (total("runnel_exporter_resident_memory_bytes"), "exporters"),
            ),
            graph(
                "Files and cold reads", "short",
                (f"process_open_fds{{{ON}}}", "open on {{instance}}"),
                (rate("runnel_cold_reads_total"), "reads from the disk a second"),
            ),
        ),
    ),
)  # fmt: skip
