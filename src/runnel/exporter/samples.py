"""The samples of every metric: what its labels are and what its value is, from a snapshot.

A sample is its labels as text, `{api="Fetch"}` or nothing, and its value. `SAMPLES` has a function
for each metric of the catalogue that is more than one number of its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from runnel.exporter import process
from runnel.exporter.layout import (
    API_COUNT,
    BUCKET_COUNT,
    ERROR_COUNT,
    ERRORS,
    FLUSH_TIME,
    GROUP_PROTOCOLS,
    GROUP_STATES,
    HISTOGRAM_WORDS,
    LOOP_LAG,
    REQUEST_TIMES,
    TRANSACTION_STATES,
    PartitionRow,
    Slot,
    State,
    bound_s,
)
from runnel.exporter.reading import Snapshot

Sample = tuple[str, float | int]
Samples = Callable[[Snapshot], Iterable[Sample]]


def escaped(text: str) -> str:
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text


def labels(**pairs: str) -> str:
    return "{" + ",".join(f'{name}="{escaped(text)}"' for name, text in pairs.items()) + "}"


# The broker


def _build_info(snapshot: Snapshot) -> Iterator[Sample]:
    facts = snapshot.facts
    named = {name: facts.get(("build", name), "") for name in ("version", "python", "broker")}
    yield labels(**named, cluster=facts.get(("build", "cluster"), "")), 1


def _ready(snapshot: Snapshot) -> Iterator[Sample]:
    yield "", int(snapshot.slot(Slot.STATE) == State.READY)


def _start_time(snapshot: Snapshot) -> Iterator[Sample]:
    yield "", snapshot.slot(Slot.STARTED_MS) / 1000


def _connections(snapshot: Snapshot) -> Iterator[Sample]:
    closed = snapshot.slot(Slot.CONNECTIONS_CLOSED)
    yield "", snapshot.slot(Slot.CONNECTIONS_ACCEPTED) - closed


def _requests(snapshot: Snapshot) -> Iterator[Sample]:
    for api, at in _served_apis(snapshot):
        yield labels(api=api), sum(snapshot.words[at : at + BUCKET_COUNT])


def _served_apis(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Those that were asked for, and where their histogram begins."""
    for key in range(API_COUNT):
        at = REQUEST_TIMES + key * HISTOGRAM_WORDS
        if any(snapshot.words[at : at + BUCKET_COUNT]):
            yield snapshot.fact("api", key), at


def _errors(snapshot: Snapshot) -> Iterator[Sample]:
    for position in range(ERROR_COUNT):
        if count := snapshot.words[ERRORS + position]:
            yield labels(error=snapshot.fact("error", position - 1)), count


# Histograms, whose samples have names of their own


def histogram(snapshot: Snapshot, name: str, inner: str, at: int) -> Iterator[str]:
    """Lines. `inner` are labels without braces, with a comma at the end if there are any."""
    total = 0
    for bucket in range(BUCKET_COUNT - 1):
        total += snapshot.words[at + bucket]
        yield f'{name}_bucket{{{inner}le="{bound_s(bucket)!r}"}} {total}\n'
    total += snapshot.words[at + BUCKET_COUNT - 1]
    yield f'{name}_bucket{{{inner}le="+Inf"}} {total}\n'
    outer = f"{{{inner[:-1]}}}" if inner else ""
    yield f"{name}_sum{outer} {snapshot.words[at + BUCKET_COUNT] / 1e6!r}\n"
    yield f"{name}_count{outer} {total}\n"


def _one(at: int) -> Callable[[Snapshot], Iterator[tuple[str, int]]]:
    return lambda _snapshot: iter([("", at)])


def _each_api(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    for api, at in _served_apis(snapshot):
        yield f'api="{escaped(api)}",', at


HISTOGRAMS: Final[dict[str, Callable[[Snapshot], Iterator[tuple[str, int]]]]] = {
    "runnel_loop_lag_seconds": _one(LOOP_LAG),
    "runnel_flush_seconds": _one(FLUSH_TIME),
    "runnel_request_seconds": _each_api,
}

# Storage

_AT: Final = {name: at for at, name in enumerate(PartitionRow._fields)}


def _partition(field: str, scale: float = 1) -> Samples:
    at = _AT[field]

    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        names = {number: escaped(name) for number, name in snapshot.names.items()}
        for row in snapshot.partitions():
            value = row[at]
            if value >= 0:  # otherwise it is not known
                yield (
                    f'{{topic="{names[row[0]]}",partition="{row[1]}"}}',
                    value if scale == 1 else value * scale,
                )

    return samples


def _count_of(field: str | None) -> Samples:
    """Partitions, or those of them in whose rows this is not 0."""

    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        at = 0 if field is None else _AT[field]
        yield "", sum(1 for row in snapshot.partitions() if row[at])

    return samples


def _sums(snapshot: Snapshot, key: str, value: str | None) -> Counter[int]:
    """By the number in `key`: of all rows, or of what is in `value`."""
    key_at, value_at = _AT[key], -1 if value is None else _AT[value]
    found: Counter[int] = Counter()
    for row in snapshot.partitions():
        found[row[key_at]] += 1 if value_at < 0 else row[value_at]
    return found


def _topics(snapshot: Snapshot) -> Iterator[Sample]:
    yield "", len(_sums(snapshot, "topic", None))


def _by_topic(value: str | None) -> Samples:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        for topic, total in _sums(snapshot, "topic", value).items():
            yield labels(topic=snapshot.names[topic]), total

    return samples


def _dir_bytes(snapshot: Snapshot) -> Iterator[Sample]:
    used = _sums(snapshot, "dir", "size_bytes")
    for row in snapshot.dirs:
        name = snapshot.names[row.dir]
        if row.total_bytes >= 0:
            yield labels(dir=name, kind="total"), row.total_bytes
            yield labels(dir=name, kind="free"), row.free_bytes
        yield labels(dir=name, kind="used"), used[row.dir]


def _dir_partitions(snapshot: Snapshot) -> Iterator[Sample]:
    counts = _sums(snapshot, "dir", None)
    for row in snapshot.dirs:
        yield labels(dir=snapshot.names[row.dir]), counts[row.dir]


def _dir_online(snapshot: Snapshot) -> Iterator[Sample]:
    for row in snapshot.dirs:
        yield labels(dir=snapshot.names[row.dir]), int(row.total_bytes >= 0)


# Groups and transactions


def _groups(snapshot: Snapshot) -> Iterator[Sample]:
    """All that there can be, or an alert on a state would find nothing while all is well."""
    counts = Counter((row.protocol, row.state) for row in snapshot.groups)
    for protocol, its_name in enumerate(GROUP_PROTOCOLS):
        for state, name in enumerate(GROUP_STATES):
            yield labels(protocol=its_name, state=name), counts[protocol, state]


def _group_members(snapshot: Snapshot) -> Iterator[Sample]:
    for row in snapshot.groups:
        yield labels(group=snapshot.names[row.group]), row.member_count


def _group_rebalances(snapshot: Snapshot) -> Iterator[Sample]:
    for row in snapshot.groups:
        yield labels(group=snapshot.names[row.group]), row.epoch


def _offset_labels(snapshot: Snapshot, group: int, topic: int, partition: int) -> str:
    names = snapshot.names
    return labels(group=names[group], topic=names[topic], partition=str(partition))


def _group_offsets(snapshot: Snapshot) -> Iterator[Sample]:
    for row in snapshot.offsets():
        yield _offset_labels(snapshot, row.group, row.topic, row.partition), row.offset


def _group_lag(snapshot: Snapshot) -> Iterator[Sample]:
    for row in snapshot.offsets():
        high_watermark = snapshot.high_watermarks.get((row.topic, row.partition))
        if high_watermark is not None:
            lag = max(high_watermark - row.offset, 0)
            yield _offset_labels(snapshot, row.group, row.topic, row.partition), lag


def _transactions(snapshot: Snapshot) -> Iterator[Sample]:
    for number, state in enumerate(TRANSACTION_STATES):
        yield labels(state=state), snapshot.words[Slot.TRANSACTIONS + number]


def _transaction_oldest(snapshot: Snapshot) -> Iterator[Sample]:
    began_ms = snapshot.slot(Slot.TRANSACTION_OLDEST_START_MS)
    yield "", max(time.time() - began_ms / 1000, 0.0) if began_ms > 0 else 0


def _left_out(snapshot: Snapshot) -> Iterator[Sample]:
    yield labels(kind="partitions"), snapshot.slot(Slot.PARTITIONS_LEFT_OUT)
    yield labels(kind="groups"), snapshot.slot(Slot.GROUPS_LEFT_OUT)
    yield labels(kind="offsets"), snapshot.slot(Slot.OFFSETS_LEFT_OUT)


# Processes


def _of_process(of: Callable[[process.Usage], float | int], *, own: bool = False) -> Samples:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        pid = "self" if own else snapshot.facts.get(("process", "pid"), "")
        usage = process.usage(pid)
        if usage is not None:
            yield "", of(usage)

    return samples


SAMPLES: Final[dict[str, Samples]] = {
    "runnel_build_info": _build_info,
    "runnel_ready": _ready,
    "runnel_start_time_seconds": _start_time,
    "runnel_connections": _connections,
    "runnel_requests_total": _requests,
    "runnel_request_errors_total": _errors,
    "runnel_topics": _topics,
    "runnel_partitions": _count_of(None),
    "runnel_partitions_led": _count_of("is_leader"),
    "runnel_logs_offline": _count_of("is_offline"),
    "runnel_topic_partitions": _by_topic(None),
    "runnel_topic_bytes": _by_topic("size_bytes"),
    "runnel_partition_log_start_offset": _partition("log_start_offset"),
    "runnel_partition_log_end_offset": _partition("log_end_offset"),
    "runnel_partition_high_watermark": _partition("high_watermark"),
    "runnel_partition_last_stable_offset": _partition("last_stable_offset"),
    "runnel_partition_bytes": _partition("size_bytes"),
    "runnel_partition_segments": _partition("segment_count"),
    "runnel_partition_oldest_record_timestamp_seconds": _partition("oldest_ms", 1e-3),
    "runnel_log_dir_bytes": _dir_bytes,
    "runnel_log_dir_partitions": _dir_partitions,
    "runnel_log_dir_online": _dir_online,
    "runnel_groups": _groups,
    "runnel_group_members": _group_members,
    "runnel_group_rebalances_total": _group_rebalances,
    "runnel_group_committed_offset": _group_offsets,
    "runnel_group_lag": _group_lag,
    "runnel_transactions": _transactions,
    "runnel_transaction_oldest_seconds": _transaction_oldest,
    "runnel_metrics_left_out": _left_out,
    "runnel_exporter_resident_memory_bytes": _of_process(lambda of: of.memory_bytes, own=True),
    "runnel_exporter_cpu_seconds_total": _of_process(lambda of: of.cpu_s, own=True),
    "process_cpu_seconds_total": _of_process(lambda of: of.cpu_s),
    "process_resident_memory_bytes": _of_process(lambda of: of.memory_bytes),
    "process_open_fds": _of_process(lambda of: of.open_files),
    "process_max_fds": _of_process(lambda of: of.open_files_max),
    "process_start_time_seconds": _of_process(lambda of: of.started_s),
}
