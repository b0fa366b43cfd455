"""What Kafka's DumpLogSegments printed, read back into records, index entries and complaints.

The tool has no exit code for a fault it found: it prints it. So everything that is neither a
heading, a batch, a record, an index entry nor a producer counts as a complaint; a new kind of
complaint in a later version of the tool cannot slip through. One false alarm is known and left
out: with deep iteration the 4.3 tool says of every segment that does not start at offset 0, also
of Kafka's own, that offset -1 is followed by the segment's first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.support.kafka_tools import dump_log

_HEADING = re.compile(r"Dumping (?P<path>.+)")
_START = re.compile(r"(Log|Snapshot) (starting|end) offset: \d+")
_BATCH = re.compile(
    r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: \d+ baseSequence: -?\d+"
    r" lastSequence: (?P<sequence>-?\d+) producerId: (?P<producer>-?\d+) .*"
    r" compresscodec: (?P<codec>\w+) crc: \d+ isvalid: (?P<valid>\w+)"
)
_RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) \w+: (?P<timestamp>-?\d+) keySize: -?\d+ valueSize: -?\d+"
    r"(?: sequence: -?\d+)? headerKeys: \[(?P<headers>.*?)\]"
    r"(?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?"
)
_INDEX_ENTRY = re.compile(r"offset: \d+ position: \d+|timestamp: -?\d+ offset: \d+")
_PRODUCER = re.compile(
    r"producerId: (?P<producer>\d+) producerEpoch: \d+ .*lastSequence: (?P<sequence>-?\d+) .*"
)
_GAPS = re.compile(r"Non-consecutive offsets in (?P<path>.+)")
_GAP = re.compile(r" *(?P<before>-?\d+) is followed by (?P<after>\d+)")
_SANE = re.compile(r".* passed sanity check\.")


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    last_sequence: int
    producer_id: int
    codec: str


class DumpedRecord(NamedTuple):
    offset: int
    timestamp_ms: int
    header_keys: str
    key: str | None
    value: str | None


@dataclass
class DumpedFile:
    path: Path
    batches: list[Batch] = field(default_factory=list)
    records: list[DumpedRecord] = field(default_factory=list)
    index_entry_count: int = 0
    last_sequences: dict[int, int] = field(default_factory=dict)  # by producer id
    sane: bool = False


@dataclass
class Dumped:
    files: dict[Path, DumpedFile]
    complaints: list[str]


def dump(paths: Sequence[Path], *options: str) -> Dumped:
    done = dump_log(paths, *options)
    dumped = parse(done.stdout)
    if done.returncode != 0:
        dumped.complaints.append(f"exit code {done.returncode}")
    # Gaps, warnings and stack traces go to standard error.
    dumped.complaints.extend(parse(done.stderr).complaints)
    missing = set(paths) - set(dumped.files)
    dumped.complaints.extend(f"not dumped: {path.name}" for path in sorted(missing))
    return dumped


def parse(output: str) -> Dumped:
    dumped = Dumped({}, [])
    current = DumpedFile(Path())
    first_offset = -1  # of the segment that a list of gaps is about
    for line in output.splitlines():
        if heading := _HEADING.fullmatch(line):
            current = DumpedFile(Path(heading["path"]))
            dumped.files[current.path] = current
        elif gaps := _GAPS.fullmatch(line):
            first_offset = int(Path(gaps["path"]).stem)
        elif gap := _GAP.fullmatch(line):
            if (int(gap["before"]), int(gap["after"])) != (-1, first_offset):
                dumped.complaints.append(f"gap in segment {first_offset}: {line.strip()}")
        elif not _understood(line, current):
            dumped.complaints.append(line)
    return dumped


def _understood(line: str, file: DumpedFile) -> bool:
    """Take in one line about a file; false if it is a complaint."""
    if found := _RECORD.fullmatch(line):
        timestamp_ms, headers = int(found["timestamp"]), found["headers"]
        file.records.append(
            DumpedRecord(int(found["offset"]), timestamp_ms, headers, found["key"], found["value"])
        )
    elif found := _BATCH.fullmatch(line):
        base, last, sequence = int(found["base"]), int(found["last"]), int(found["sequence"])
        file.batches.append(Batch(base, last, sequence, int(found["producer"]), found["codec"]))
        return found["valid"] == "true"
    elif _INDEX_ENTRY.fullmatch(line):
        file.index_entry_count += 1
    elif found := _PRODUCER.fullmatch(line):
        file.last_sequences[int(found["producer"])] = int(found["sequence"])
    elif _SANE.fullmatch(line):
        file.sane = True
    else:
        return not line.strip() or _START.fullmatch(line) is not None
    return True
