"""`reset`: where a pipeline would begin, and what that reads twice or leaves out, by partition."""

import json
import shutil
from dataclasses import dataclass, replace

from runnel.pipelines import origin
from runnel.pipelines.checkpoint import reached
from runnel.pipelines.home import Home
from runnel.pipelines.reading import source_options
from runnel.pipelines.spec import Decode, Spec
from runnel.spark.reads.offsets import Offsets
from runnel.types import TopicPartition


@dataclass(frozen=True)
class Move:
    """One partition; `now` is None where nothing of it was read yet."""

    at: TopicPartition
    now: int | None
    to: int
    first: int  # of the log
    end: int

    @property
    def twice(self) -> int:
        """Records that were read and will be read again, as far as they are kept."""
        return 0 if self.now is None else max(0, self.now - max(self.to, self.first))

    @property
    def skipped(self) -> int:
        """Records that are there and will never be read."""
        since = self.first if self.now is None else max(self.now, self.first)
        return max(0, min(self.to, self.end) - since)


def plan(spec: Spec, home: Home, start: str) -> list[Move]:
    """`start` as `from.start` has it. Raises OptionError, SourceError, ValueError."""
    from runnel.spark.reads.assignment import assignment
    from runnel.spark.reads.logs import open_logs
    from runnel.spark.reads.options import stream_options
    from runnel.spark.reads.resolving import resolve

    asked = replace(spec, source=replace(spec.source, start=start), decode=Decode())
    options = stream_options(source_options(asked, spec.name))
    logs = open_logs(options)
    try:
        assigned = assignment(logs, options.subscription, must_exist=True)
        firsts = logs.earliest(assigned.partitions)
        ends = logs.latest(assigned.partitions)
        targets = resolve(logs, options.start, assigned)
    finally:
        logs.close()
    now = reached(home.checkpoint).offsets
    return [
        Move(at, now.get(at), min(max(targets[at], firsts[at]), ends[at]), firsts[at], ends[at])
        for at in sorted(assigned.partitions)
    ]


def apply(home: Home, moves: list[Move]) -> origin.Origin:
    """A new generation, which begins there. The checkpoint before is kept beside it, once."""
    before = origin.read(home)
    offsets = Offsets({move.at: move.to for move in moves}).as_dict()
    found = origin.Origin(before.generation + 1, json.dumps(offsets))
    old = home.folder / "checkpoint.before-reset"
    shutil.rmtree(old, ignore_errors=True)
    if home.checkpoint.exists():
        home.checkpoint.rename(old)
    origin.write(home, found)
    return found
