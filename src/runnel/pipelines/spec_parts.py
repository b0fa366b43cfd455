"""The parts of a pipeline's file, as plain values: `from`, `decode`, `transform`, `to`, `every`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from runnel.pipelines.units import span_ms, span_text

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
ONCE: Final = "once"
CONTINUOUS: Final = "continuous"
SPAN: Final = "span"
EVERY_MS_MAX: Final = 366 * 86_400_000


@dataclass(frozen=True)
class Source:
    """`from:`"""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    table: str = ""  # an absolute path, or a name with `catalog.*` options
    path: str = ""  # data folders of a broker on this machine
    bootstrap: str = DEFAULT_BOOTSTRAP
    start: str = "earliest"  # or latest, a time, offsets as JSON
    on_data_loss: str = "stop"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decode:
    """`decode:`; format is empty where values stay bytes."""

    format: str = ""
    schema: str = ""
    registry: str = ""
    subject: str = ""
    bad_records: str = "dead_letter"
    dead_letters: str = ""  # a topic; the kind says what it is unless told
    nested: bool = False


@dataclass(frozen=True)
class Transform:
    """`transform:`; at most one of the two."""

    sql: str = ""
    python: str = ""  # `file.py:function`, the file beside the pipeline's


@dataclass(frozen=True)
class Target:
    """`to:`"""

    table: str = ""
    format: str = ""  # of a table; what its folder holds, else delta
    partition_by: tuple[str, ...] = ()
    topic: str = ""
    bootstrap: str = DEFAULT_BOOTSTRAP
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Every:
    mode: str = ONCE  # or continuous, span
    interval_ms: int = 0

    def __str__(self) -> str:
        return f"every {span_text(self.interval_ms)}" if self.mode == SPAN else self.mode


@dataclass(frozen=True)
class OnSpark:
    """`spark:`; this machine unless a master is named."""

    master: str = ""
    cores: int | None = None
    memory: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


def every_of(text: str) -> Every:
    """Raises ValueError."""
    if text in (ONCE, CONTINUOUS):
        return Every(text)
    try:
        interval_ms = span_ms(text)
    except ValueError as error:
        raise ValueError(f"{error}, nor once, nor continuous") from None
    if not 0 < interval_ms <= EVERY_MS_MAX:
        raise ValueError(f"{text!r} is not between 1 ms and 366 days")
    return Every(SPAN, interval_ms)
