"""What the log cleaner may use, as it is set now: Kafka's `log.cleaner.*`."""

from dataclasses import dataclass

from runnel.config.definition import ConfigError

LEAST_MAP_BYTES = 1 << 20  # of each thread, as in Kafka
LOAD_FACTOR_LIMITS = (
    0.000_001,
    0.99,
)  # Kafka takes any number; a full table would never find an end

NAMES = (
    "log.cleaner.enable",
    "log.cleaner.threads",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    enable: bool
    threads: int
    backoff_ms: int
    dedupe_buffer_bytes: int  # of all threads together, as are the next two
    load_factor: float
    io_buffer_bytes: int
    io_max_bytes_per_second: float

    def __post_init__(self) -> None:
        if self.enable and self.dedupe_buffer_bytes <= self.threads * LEAST_MAP_BYTES:
            raise ConfigError(
                "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
            )
        if self.io_max_bytes_per_second <= 0:
            raise ConfigError("log.cleaner.io.max.bytes.per.second must be more than 0")

    @property
    def effective_load_factor(self) -> float:
        low, high = LOAD_FACTOR_LIMITS
        return min(max(self.load_factor, low), high)
