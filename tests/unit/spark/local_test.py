"""Segment files give the rows that a consumer gets, whatever their owner does meanwhile."""

import random
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.arrow import local, mapped, rows
from runnel.arrow.locating import Locator
from runnel.arrow.log_files import LogNames, list_log
from runnel.arrow.losses import DataLossError, ReadError
from runnel.arrow.offline import Folders
from runnel.arrow.ranges import COLUMNS, Place, Range, Scan
from runnel.arrow.scan import read, read_from_broker
from runnel.client.admin import LATEST, list_offsets
from runnel.client.cluster import Cluster, addresses_of
from runnel.ports import Disk
from runnel.testing import RunnelBroker
from runnel.wire.batch import BatchHeader
from tests.compat.kafka_folder.expected import ExpectedRecord, Folder
from tests.support import kafka_folders
from tests.support.mixed_log import MixedWriter, Row, Wanted, wanted

pytest.importorskip("pyarrow")

SEGMENT = 1 << 20
SETTINGS = {
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.segment.bytes": SEGMENT,
    "log.retention.ms": -1,
}
TOPICS = {"mixed": {"cleanup.policy": "delete"}, "compacted": {"cleanup.policy": "compact"}}
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker(SETTINGS) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        topics = [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
        for made in admin.create_topics(topics).values():
            made.result(PATIENCE_S)
        for name in TOPICS:
            writer = MixedWriter(running.bootstrap_servers, name, seed=8, keyed=name == "compacted")
            writer.write(350)
            writer.leave_open()
        _await_compaction(running)
        yield running


def _await_compaction(broker: RunnelBroker) -> None:
    """Until the cleaner has found nothing more to do for a while."""
    deadline, sizes, quiet = time.monotonic() + PATIENCE_S, {"": 0}, 0
    while "cleaned compacted-0" not in broker.logs or quiet < 15:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        found = {"": 0}
        with suppress(FileNotFoundError):  # replaced meanwhile
            files = (broker.data_dir / "compacted-0").glob("*.log")
            found = {path.name: path.stat().st_size for path in files}
        sizes, quiet = found, quiet + 1 if found == sizes else 0


@pytest.fixture(scope="module")
def expected(broker: RunnelBroker) -> dict[str, Wanted]:
    found = {name: wanted(broker.bootstrap_servers, name) for name in TOPICS}
    offsets = [row[0] for row in found["compacted"].all]
    assert offsets[-1] - offsets[0] > len(offsets) + 100, "compaction left gaps"
    for each in found.values():
        assert len(each.committed) < len(each.all) and each.last_stable < each.end
    return found


@pytest.fixture
def scan(broker: RunnelBroker) -> Scan:
    return Scan({"bootstrap.servers": broker.bootstrap_servers}, columns=COLUMNS, read_mode="local")


def _place(broker: RunnelBroker, scan: Scan, topic: str) -> Place:
    with Cluster(addresses_of(broker.bootstrap_servers)) as cluster:
        (piece,) = Locator(scan).placed([Range(topic, 0, 0, 1)], cluster)
    assert piece.place is not None
    return piece.place


def _from_files(scan: Scan, piece: Range) -> list[Row]:
    """With the way to a broker closed."""
    found = local.open_range(replace(scan, client={}), piece)
    assert found is not None, "not read from files"
    return _rows(list(found))


def _rows(batches: list[object]) -> list[Row]:
    rows: list[Row] = []
    for batch in batches:
        for row in batch.to_pylist():  # type: ignore[attr-defined]  # pyarrow is imported late
            headers = row["headers"]
            pairs = None if headers is None else [(each["key"], each["value"]) for each in headers]
            at_ms = round(row["timestamp"].timestamp() * 1000)
            rows.append((row["offset"], row["key"], row["value"], at_ms, pairs))
    return rows


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("read_committed", [False, True])
def test_the_rows_of_a_consumer(
    broker: RunnelBroker,
    expected: dict[str, Wanted],
    scan: Scan,
    topic: str,
    read_committed: bool,
) -> None:
    rows = expected[topic].committed if read_committed else expected[topic].all
    end = expected[topic].last_stable if read_committed else expected[topic].end
    scan = replace(scan, read_committed=read_committed)
    place = _place(broker, scan, topic)
    assert _from_files(scan, Range(topic, 0, 0, end, place)) == rows
    rng = random.Random(1)
    for _ in range(20):
        first, after = sorted(rng.sample(range(end + 1), 2))
        piece = Range(topic, 0, first, after, place)
        assert _from_files(scan, piece) == [row for row in rows if first <= row[0] < after]


@pytest.mark.parametrize("read_committed", [False, True])
def test_with_the_broker_down(
    broker: RunnelBroker, expected: dict[str, Wanted], tmp_path: Path, read_committed: bool
) -> None:
    """The same offsets and rows from a copy of the folder, and without the log's indexes."""
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))  # as if it had been killed
    for index in data.rglob("*index"):
        if read_committed:
            index.unlink()
        else:
            index.write_bytes(random.Random(2).randbytes(800))
    scan = Scan({}, COLUMNS, read_committed=read_committed, path=str(data))
    found = Folders(str(data))
    for topic, each in expected.items():
        first, latest = found.earliest_and_latest(topic, 0, read_committed=read_committed)
        assert latest == (each.last_stable if read_committed else each.end)
        pieces = Locator(scan).placed([Range(topic, 0, first, latest)], None)
        assert _rows(list(read(scan, pieces[0]))) == (
            each.committed if read_committed else each.all
        )


def test_an_end_that_is_not_written_yet_is_the_brokers(
    broker: RunnelBroker, expected: dict[str, Wanted], scan: Scan, tmp_path: Path
) -> None:
    """A copy that is behind, as on a network file system: the rest comes over the network."""
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    last = max((data / "mixed-0").glob("*.log"))
    last.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))
    piece = Range("mixed", 0, 0, expected["mixed"].end, place)
    assert _rows(list(read(scan, piece))) == expected["mixed"].all
    with pytest.raises(ReadError, match=r"mixed-0 .* ends at offset \d+; and no kafka.bootstrap"):
        _from_files(scan, piece)
    with_open = replace(scan, read_committed=True, client={})
    whole = piece._replace(place=_place(broker, scan, "mixed"))
    with pytest.raises(ReadError, match="open transaction"):
        _from_files(with_open, whole)


def test_a_damaged_batch_is_an_error_that_names_the_file(
    broker: RunnelBroker, scan: Scan, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    first = min((data / "mixed-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))
    with pytest.raises(ReadError, match=f"{first} from offset .* corrupt"):
        _from_files(scan, Range("mixed", 0, 0, 10**6, place))


@pytest.mark.parametrize("counts", [False, True])
def test_a_damaged_length_does_not_hide_the_rest_of_a_segment(
    broker: RunnelBroker,
    expected: dict[str, Wanted],
    scan: Scan,
    tmp_path: Path,
    counts: bool,
) -> None:
    """The broker is asked from there on, whose copy is whole here. Without one it is an error."""
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    second = sorted((data / "mixed-0").glob("*.log"))[1]
    content = bytearray(second.read_bytes())
    position = 0
    for _ in range(5):
        position += BatchHeader.read(content, position).size
    content[position + 8] ^= 0x7F
    second.write_bytes(content)
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))
    piece = Range("mixed", 0, 0, expected["mixed"].end, place)
    columns = ("topic", "partition") if counts else COLUMNS
    wanted_scan = replace(scan, columns=columns)
    found = local.open_range(wanted_scan, piece, headers_suffice=counts)
    assert found is not None
    batches = list(found)
    if counts:
        assert sum(batch.num_rows for batch in batches) == len(expected["mixed"].all)
    else:
        assert _rows(batches) == expected["mixed"].all
    with pytest.raises(ReadError, match=f"{second} is damaged"):
        _from_files(wanted_scan, piece)
    committed = piece._replace(end=expected["mixed"].last_stable)
    assert (
        _rows(list(read(replace(scan, read_committed=True), committed)))
        == expected["mixed"].committed
    )


def test_a_range_of_another_topic_is_not_read_from_files_of_this_name(
    broker: RunnelBroker, scan: Scan
) -> None:
    """Though the place is of the topic that has the name now."""
    place = _place(broker, scan, "mixed")
    piece = Range("mixed", 0, 0, 5, place, topic_id=bytes(15) + b"1")
    with pytest.raises(DataLossError, match="deleted and made anew"):
        list(read(replace(scan, poll_timeout_ms=300), piece))
    stale = piece._replace(place=place._replace(topic_id=piece.topic_id), topic_id=place.topic_id)
    assert len(_from_files(scan, stale)) > 0


def test_files_of_another_topic_are_left_alone(broker: RunnelBroker, scan: Scan) -> None:
    place = _place(broker, scan, "mixed")
    for other in (
        place._replace(topic_id=bytes(15) + b"1"),
        place._replace(folders=("/nowhere",)),
        place._replace(folders=()),
    ):
        assert local.open_range(scan, Range("mixed", 0, 0, 5, other)) is None
        with pytest.raises(ReadError, match="mixed-0"):
            local.open_range(replace(scan, client={}), Range("mixed", 0, 0, 5, other))


def test_files_that_are_gone_may_be_skipped_without_a_broker(tmp_path: Path) -> None:
    scan = Scan({}, columns=COLUMNS, read_mode="local", path=str(tmp_path))
    piece = Range("mixed", 0, 0, 10, Place((str(tmp_path),), bytes(16)))
    with pytest.raises(ReadError, match=r"offsets 0 to 9 of mixed-0 .*there is no folder mixed-0"):
        list(read(scan, piece))
    assert list(read(replace(scan, fail_on_data_loss=False), piece)) == []


def test_a_topic_made_anew_while_it_is_opened(
    broker: RunnelBroker, scan: Scan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))

    def list_then_replace(disk: Disk, folder: str) -> LogNames:
        found = list_log(disk, folder)
        gone = data / ("mixed-0." + "0" * 32 + "-delete")
        if not gone.exists():
            (data / "mixed-0").rename(gone)
            shutil.copytree(data / "compacted-0", data / "mixed-0")
        return found

    monkeypatch.setattr(mapped, "list_log", list_then_replace)
    assert local.open_range(scan, Range("mixed", 0, 0, 5, place)) is None


def test_a_compaction_that_was_interrupted(
    broker: RunnelBroker, expected: dict[str, Wanted], scan: Scan, tmp_path: Path
) -> None:
    """Between the renames the only file of some offsets is a `.swap`; `.cleaned` counts never."""
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))
    logs = sorted((data / "mixed-0").glob("*.log"))
    logs[1].rename(f"{logs[1]}.swap")
    Path(f"{logs[2]}.cleaned").write_bytes(b"half")
    piece = Range("mixed", 0, 0, expected["mixed"].end, place)
    assert _from_files(scan, piece) == expected["mixed"].all
    Path(f"{logs[0]}.cleaned").write_bytes(b"half")  # not begun: the swap file is nothing
    first, after = int(logs[1].stem), int(logs[2].stem)
    rest = [row for row in expected["mixed"].all if not first <= row[0] < after]
    assert _from_files(scan, piece) == rest


def test_a_name_that_a_listing_missed(
    broker: RunnelBroker,
    expected: dict[str, Wanted],
    scan: Scan,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter(range(100))

    def list_once_without_one(disk: Disk, folder: str) -> LogNames:
        found = list_log(disk, folder)
        if next(times) == 0:
            del found.segments[1]
        return found

    monkeypatch.setattr(mapped, "list_log", list_once_without_one)
    piece = Range("mixed", 0, 0, expected["mixed"].end, _place(broker, scan, "mixed"))
    assert _from_files(scan, piece) == expected["mixed"].all


def test_deleted_records_stay_deleted(broker: RunnelBroker, scan: Scan, tmp_path: Path) -> None:
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    (data / "log-start-offset-checkpoint").write_text("0\n1\nmixed 0 10\n")
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))
    assert local.open_range(scan, Range("mixed", 0, 5, 20, place)) is None
    assert _from_files(scan, Range("mixed", 0, 10, 20, place))


def test_what_is_open_is_read_to_its_end(
    broker: RunnelBroker, expected: dict[str, Wanted], scan: Scan, tmp_path: Path
) -> None:
    """Retention takes every name between the opening and the reading."""
    data = Path(shutil.copytree(broker.data_dir, tmp_path / "data"))
    place = _place(broker, scan, "mixed")._replace(folders=(str(data),))
    end = expected["mixed"].last_stable
    for committed, wanted_rows in (
        (False, expected["mixed"].all),
        (True, expected["mixed"].committed),
    ):
        piece = Range("mixed", 0, 0, end, place)
        found = local.open_range(replace(scan, read_committed=committed, client={}), piece)
        assert found is not None
        first = next(found)
        (data / "mixed-0").rename(data / "gone")
        rest = list(found)
        assert _rows([first, *rest]) == [row for row in wanted_rows if row[0] < end]
        (data / "gone").rename(data / "mixed-0")


def test_more_segments_than_are_opened_at_once(
    broker: RunnelBroker,
    expected: dict[str, Wanted],
    scan: Scan,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapped, "OPEN_FILES_MAX", 1)
    for committed, wanted_rows in (
        (False, expected["mixed"].all),
        (True, expected["mixed"].committed),
    ):
        end = expected["mixed"].last_stable
        piece = Range("mixed", 0, 0, end, _place(broker, scan, "mixed"))
        found = _from_files(replace(scan, read_committed=committed), piece)
        assert found == [row for row in wanted_rows if row[0] < end]


def test_while_the_owner_writes_and_compacts(broker: RunnelBroker) -> None:
    """Offset and key of every row are those of what was written; the last of each key is there."""
    name = "busy"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    config = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT)}
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(PATIENCE_S)
    writer = MixedWriter(broker.bootstrap_servers, name, seed=3, keyed=True)
    writer.write(20)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            writer.write(10)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        scan = Scan({"bootstrap.servers": broker.bootstrap_servers}, COLUMNS, read_committed=True)
        with Cluster(addresses_of(broker.bootstrap_servers)) as cluster:
            locator = Locator(scan)
            deadline = time.monotonic() + 4
            while time.monotonic() < deadline:
                _compare(scan, locator, cluster, name)
    finally:
        done.set()
        thread.join()
    assert f"cleaned {name}-0" in broker.logs


def _compare(scan: Scan, locator: Locator, cluster: Cluster, topic: str) -> None:
    """Both ways at about the same time: compaction may take from either what the other has."""
    end = list_offsets(cluster, topic, {0: LATEST}, committed=True)[0]
    (piece,) = locator.placed([Range(topic, 0, 0, end)], cluster)
    assert piece.place is not None
    files = {row[0]: row for row in _rows(list(read(scan, piece)))}
    fetched = {row[0]: row for row in _rows(list(read_from_broker(scan, piece)))}
    for offset in files.keys() & fetched.keys():
        assert files[offset] == fetched[offset]
    latest: dict[bytes | None, int] = {row[1]: row[0] for row in fetched.values()}
    missing = [at for key, at in latest.items() if at not in files and fetched[at][2] is not None]
    assert not missing


def test_records_of_other_times_may_be_left_out(
    broker: RunnelBroker, expected: dict[str, Wanted], scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of runs that have none of the wanted times nothing is decoded; none of the others is lost."""
    monkeypatch.setattr(rows, "BATCH_ROWS", 5)
    everything = expected["mixed"].all
    piece = Range("mixed", 0, 0, expected["mixed"].end, _place(broker, scan, "mixed"))
    stamps = sorted(row[3] for row in everything)
    least, most = stamps[-50], stamps[-1]
    found = _from_files(replace(scan, timestamps_ms=(least, most)), piece)
    wanted_rows = [row for row in everything if least <= row[3] <= most]
    assert [row for row in found if least <= row[3] <= most] == wanted_rows
    assert len(found) < len(everything) / 2
    nothing = replace(scan, timestamps_ms=(stamps[-1] + 1, stamps[-1] + 2))
    assert _from_files(nothing, piece) == []


@pytest.mark.parametrize("how", ["clean", "killed"])
def test_folders_that_kafka_wrote(how: str, tmp_path: Path) -> None:
    """All codecs, transactions, a compacted topic: the rows that Kafka itself served from them."""
    kafka_folders.unpack(tmp_path)
    expected: Folder = kafka_folders.served()[how]
    path = str(tmp_path / how)
    scan = Scan({}, COLUMNS, read_committed=True, path=path)
    found, locator = Folders(path), Locator(scan)
    count = 0
    for topic, told in expected["topics"].items():
        for partition in range(len(told["watermarks"])):
            first, latest = found.earliest_and_latest(topic, partition, read_committed=True)
            (piece,) = locator.placed([Range(topic, partition, first, latest)], None)
            rows_found = _rows(list(read(scan, piece)))
            assert rows_found == [
                _kafka_row(each)
                for each in expected["records"]
                if (each["topic"], each["partition"]) == (topic, partition)
                and each["offset"] < latest
            ]
            count += len(rows_found)
    assert count == len(expected["records"]) if how == "clean" else count > 0


def _kafka_row(record: ExpectedRecord) -> Row:
    def raw(text: str | None) -> bytes | None:
        return None if text is None else text.encode("latin-1")

    headers = [(key, raw(value)) for key, value in record["headers"]] or None
    key, value = raw(record["key"]), raw(record["value"])
    return record["offset"], key, value, record["timestamp_ms"], headers
