"""Folders that a Kafka 4.3 broker wrote, looked into without a broker.

The oracle is what Kafka itself served from them, recorded by `tests.compat.kafka_folder.record`.
"""

import base64
import hashlib
from pathlib import Path
from typing import cast

import pytest

from runnel.inspect.analyzing import Analysis, analyze_partition
from runnel.inspect.describing import describe_partition
from runnel.inspect.dumping import Row, dump_file
from runnel.inspect.folders import FolderFiles, chosen, look_into
from runnel.inspect.verifying import Finding, Verifier
from runnel.storage.checkpoints import LOG_STARTS, encode_id
from runnel.storage.files import OsDisk
from tests.compat.kafka_folder.expected import ExpectedRecord, Folder
from tests.support import kafka_folders

ABORTED = "transactions"  # its records were read committed, so some of the log's are not among them
DISK = OsDisk(read_only=True)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kafka_folders.unpack(tmp_path_factory.mktemp("kafka-folder"))


@pytest.fixture(params=["clean", "killed"])
def recorded(request: pytest.FixtureRequest, unpacked: Path) -> tuple[FolderFiles, Folder]:
    expected: dict[str, Folder] = kafka_folders.served()
    found = look_into(DISK, str(unpacked / request.param))
    return found, expected[request.param]


def test_whose_it_is_and_what_it_holds(recorded: tuple[FolderFiles, Folder]) -> None:
    found, expected = recorded
    assert found.meta is not None and found.meta.cluster_id == expected["cluster_id"]
    assert found.is_clean == found.path.endswith("/clean")
    starts = found.checkpoints[LOG_STARTS]
    for name, topic in expected["topics"].items():
        partitions = chosen(found, name)
        described = [describe_partition(DISK, p, starts.get(p.partition, 0)) for p in partitions]
        ends = [summary.log_end_offset for summary in described]
        assert ends == [high for _, high in topic["watermarks"]], name
        if found.is_clean:  # the other was killed before the start was checkpointed
            lows = [low for low, _ in topic["watermarks"]]
            assert [summary.log_start_offset for summary in described] == lows, name
        topic_id = topic["topic_id"].translate(str.maketrans("+/", "-_"))  # as librdkafka has it
        assert {encode_id(p.topic_id) for p in partitions} == {topic_id}, name


def test_the_records_are_those_that_kafka_served(recorded: tuple[FolderFiles, Folder]) -> None:
    found, expected = recorded
    lows = {name: [low for low, _ in t["watermarks"]] for name, t in expected["topics"].items()}
    dumped = [
        _as_expected(row, files.partition.topic, files.partition.index)
        for name in expected["topics"]
        for files in chosen(found, name)
        for segment in files.segments
        for row in dump_file(DISK, segment.path(), deep=True)
        if row["kind"] == "record" and "control_type" not in row
    ]
    shown = {
        (record["topic"], record["partition"], record["offset"]): record
        for record in dumped
        if record["offset"] >= lows[record["topic"]][record["partition"]]
    }
    for record in expected["records"]:
        place = (record["topic"], record["partition"], record["offset"])
        got = shown.pop(place)
        assert got == {name: record[name] for name in got}  # type: ignore[literal-required]  # names of a TypedDict
    assert {topic for topic, _, _ in shown} <= {ABORTED}
    assert len(shown) == (9 if shown else 0)


def _as_expected(row: Row, topic: str, partition: int) -> ExpectedRecord:
    headers = cast("list[tuple[str, object]]", row["headers"])
    return cast(
        "ExpectedRecord",
        {
            "topic": topic,
            "partition": partition,
            "offset": row["offset"],
            "timestamp_ms": row["timestamp"],
            "key": _latin(row["key"]),
            "value": _latin(row["value"]),
            "headers": [[name, _latin(value)] for name, value in headers],
        },
    )


def _latin(shown: object) -> str | None:
    if isinstance(shown, dict):
        return base64.b64decode(shown["base64"]).decode("latin-1")
    return None if shown is None else str(shown).encode().decode("latin-1")


def test_only_the_torn_end_is_found(recorded: tuple[FolderFiles, Folder]) -> None:
    found, _ = recorded
    findings: list[Finding] = []
    checked = Verifier(DISK, findings.append, deep=True).verify(found, found.partitions)
    wanted = [] if found.is_clean else ["codec-none-0/00000000000000000030.log"]
    assert [finding.path.removeprefix(found.path + "/") for finding in findings] == wanted
    assert (checked.partitions, checked.segments) == (15, 32)


def test_what_is_counted_is_what_is_there(recorded: tuple[FolderFiles, Folder]) -> None:
    found, expected = recorded
    for name, codec in (("codec-zstd", "zstd"), ("codec-gzip", "gzip"), ("compacted", "none")):
        analysis = Analysis()
        for files in chosen(found, name):
            analysis.add_all(analyze_partition(DISK, files))
        records = [record for record in expected["records"] if record["topic"] == name]
        assert analysis.messages == len(records) == 40
        assert analysis.with_key == sum(record["key"] is not None for record in records)
        assert analysis.null_values == sum(record["value"] is None for record in records)
        assert analysis.headers == sum(len(record["headers"]) for record in records)
        sizes = sorted(len(record["value"] or "") for record in records)
        assert analysis.value_sizes.percentiles(0.5, 1.0) == [sizes[19], sizes[39]]
        assert analysis.value_sizes.total_bytes == sum(sizes)
        times = [record["timestamp_ms"] for record in records]
        assert (analysis.first_timestamp, analysis.last_timestamp) == (min(times), max(times))
        assert set(analysis.codecs) == {codec}
        assert (analysis.codecs[codec].ratio > 1.5) == (codec != "none")


def test_nothing_is_written(unpacked: Path) -> None:
    before = _state(unpacked)
    for kind in ("clean", "killed"):
        found = look_into(DISK, str(unpacked / kind))
        Verifier(DISK, lambda _finding: None, deep=True).verify(found, found.partitions)
        for files in found.partitions:
            describe_partition(DISK, files)
            analyze_partition(DISK, files)
    assert _state(unpacked) == before


def _state(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
