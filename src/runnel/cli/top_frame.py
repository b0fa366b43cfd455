"""What `runnel top` shows at one moment, as plain numbers: no terminal and no clock in here."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class TopicOrder(StrEnum):
    """By what topics are sorted; the key `s` goes to the next one."""

    WRITTEN = "records/s"
    SIZE = "size"
    PARTITIONS = "partitions"
    NAME = "name"

    def next(self) -> "TopicOrder":
        orders = list(TopicOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


class ApiRow(NamedTuple):
    api: str
    rate: float
    p50_s: float | None
    p99_s: float | None


class TopicRow(NamedTuple):
    topic: str
    records_rate: float | None
    growth_rate: float | None  # bytes a second; below zero when retention takes more than comes
    size_bytes: float
    partitions: int


class GroupRow(NamedTuple):
    group: str
    lag: float
    lag_rate: float | None  # a second: above zero, it falls behind
    members: int | None


class FolderRow(NamedTuple):
    folder: str
    total_bytes: float
    free_bytes: float
    used_bytes: float | None  # by logs

    @property
    def free_share(self) -> float:
        return self.free_bytes / self.total_bytes if self.total_bytes else 1.0


@dataclass(slots=True)
class Frame:
    """A value of None is not known yet: rates need two looks, and some metrics may be missing."""

    version: str = ""
    broker: str = ""  # its number
    up_s: float | None = None
    ready: bool = True
    in_rate: float | None = None  # bytes a second
    out_rate: float | None = None
    records_rate: float | None = None
    batches_rate: float | None = None
    requests_rate: float | None = None
    errors_rate: float | None = None
    in_history: list[float] = field(default_factory=list)
    out_history: list[float] = field(default_factory=list)
    requests_history: list[float] = field(default_factory=list)
    apis: list[ApiRow] = field(default_factory=list)
    errors: list[tuple[str, float]] = field(default_factory=list)  # (name, a second)
    connections: float | None = None
    accepted_rate: float | None = None
    loop_lag_p50_s: float | None = None
    loop_lag_p99_s: float | None = None
    cpu_share: float | None = None  # of one core
    memory_bytes: float | None = None
    topics: list[TopicRow] = field(default_factory=list)
    groups: list[GroupRow] = field(default_factory=list)
    group_states: list[tuple[str, int]] = field(default_factory=list)
    transaction_states: list[tuple[str, int]] = field(default_factory=list)
    oldest_transaction_s: float | None = None
    folders: list[FolderRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
