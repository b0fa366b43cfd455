"""What a retention would free: asked of the broker's own rule, so that it is what it would do."""

from collections.abc import Sequence
from typing import NamedTuple

from runnel.config.topic import LogConfig
from runnel.inspect.analyzing import AnalyzedSegment
from runnel.storage.retention import expired


class Freed(NamedTuple):
    segments: int
    bytes: int
    of_segments: int
    of_bytes: int


def freed_by(
    segments: Sequence[AnalyzedSegment], *, retention_ms: int, retention_bytes: int, now_ms: int
) -> Freed:
    """Of one partition, whose every record counts as replicated; -1 is no limit."""
    going = expired(
        segments,
        LogConfig(retention_ms=retention_ms, retention_bytes=retention_bytes),
        now_ms=now_ms,
        high_watermark=max((segment.next_offset for segment in segments), default=0),
        log_start_offset=0,
        modified_ms=lambda segment: segment.files.modified_ms,
    )
    freed = sum(segment.size for segment, _ in going)
    return Freed(len(going), freed, len(segments), sum(segment.size for segment in segments))
