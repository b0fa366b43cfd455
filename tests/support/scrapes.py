"""Prometheus text as a broker's exporter would serve it, for tests of what reads it."""

from collections.abc import Mapping, Sequence

BUSY: Mapping[str, Mapping[str, float]] = {
    "runnel_build_info": {'version="0.1.0",broker="7"': 1},
    "runnel_start_time_seconds": {"": 1_000.0},
    "runnel_ready": {"": 1},
    "runnel_connections": {"": 42},
    "runnel_topic_bytes": {'topic="orders"': 5_000, 'topic="clicks"': 90_000},
    "runnel_topic_partitions": {'topic="orders"': 2, 'topic="clicks"': 1},
    "runnel_group_members": {'group="billing"': 3, 'group="idle"': 0},
    "runnel_groups": {
        'protocol="classic",state="Stable"': 1,
        'protocol="consumer",state="Empty"': 1,
    },
    "runnel_log_dir_bytes": {
        'dir="/data",kind="total"': 1000,
        'dir="/data",kind="free"': 600,
        'dir="/data",kind="used"': 300,
    },
    "runnel_logs_offline": {"": 0},
    "runnel_transactions": {'state="Ongoing"': 2, 'state="CompleteCommit"': 9},
    "runnel_transaction_oldest_seconds": {"": 4},
    "process_resident_memory_bytes": {"": 80 << 20},
}


def exposition(*parts: Mapping[str, Mapping[str, float]], kinds: Mapping[str, str] = {}) -> str:
    """Later parts win. A name that ends in `_total` is a counter, unless it is said otherwise."""
    merged: dict[str, Mapping[str, float]] = {}
    for part in parts:
        merged.update(part)
    lines = []
    for name, series in merged.items():
        kind = kinds.get(name, "counter" if name.endswith("_total") else "gauge")
        lines.append(f"# TYPE {name} {kind}")
        for labels, value in series.items():
            lines.append(f"{name}{{{labels}}} {value!r}" if labels else f"{name} {value!r}")
    return "\n".join(lines) + "\n"


def histogram(
    name: str, counts: Sequence[float], labels: str = "", first_bound: float = 0.001
) -> str:
    """Cumulative counts of buckets whose bounds double; the last is the infinite one."""
    comma = "," if labels else ""
    lines = [f"# TYPE {name} histogram"]
    for at, count in enumerate(counts):
        bound = "+Inf" if at == len(counts) - 1 else repr(first_bound * 2**at)
        lines.append(f'{name}_bucket{{{labels}{comma}le="{bound}"}} {count}')
    braced = f"{{{labels}}}" if labels else ""
    lines += [
        f"{name}_sum{braced} {counts[-1] * first_bound}",
        f"{name}_count{braced} {counts[-1]}",
    ]
    return "\n".join(lines) + "\n"
