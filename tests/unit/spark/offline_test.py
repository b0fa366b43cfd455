"""Offsets of a broker that is down are those that it gives when it is up."""

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from runnel.arrow.offline import Folders, OfflineError
from runnel.client.admin import LATEST, list_offsets
from runnel.client.cluster import Cluster, addresses_of
from runnel.storage.checkpoints import HIGH_WATERMARKS
from runnel.testing import RunnelBroker
from tests.compat.kafka_folder.expected import Folder
from tests.support import kafka_folders

PATIENCE_S = 20.0
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def killed() -> Iterator[RunnelBroker]:
    """One partition: 3,000 plain records a second apart, then an open transaction."""
    settings = {"log.segment.bytes": 1 << 20, "log.retention.ms": -1}
    with RunnelBroker(settings) as broker:
        plain = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1, "log_level": 0}
        )
        for i in range(3000):
            plain.produce("t", b"%01000d" % i, timestamp=FIRST_MS + 1000 * i)
        assert plain.flush(PATIENCE_S) == 0
        open_one = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": "open",
                "log_level": 0,
            }
        )
        open_one.init_transactions(PATIENCE_S)
        open_one.begin_transaction()
        open_one.produce("t", b"undecided")
        assert open_one.flush(PATIENCE_S) == 0
        broker.kill()
        yield broker


@pytest.fixture
def copy(killed: RunnelBroker, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed.data_dir, tmp_path / "data"))


def test_gives_all_that_the_next_start_would(copy: Path) -> None:
    found = Folders(str(copy))
    assert "t" in found.topics() and found.partitions("t") == [0]
    assert found.earliest_and_latest("t", 0, read_committed=False) == (0, 3001)
    assert found.earliest_and_latest("t", 0, read_committed=True) == (0, 3000)
    assert _latest_after_start(copy) == (3001, 3000)


def _latest_after_start(data_dir: Path) -> tuple[int, int]:
    """Of all, and of what is committed."""
    with (
        RunnelBroker({"log.retention.ms": -1}, data_dir=data_dir) as broker,
        Cluster(addresses_of(broker.bootstrap_servers)) as cluster,
    ):
        latest, stable = (
            list_offsets(cluster, "t", {0: LATEST}, committed=committed)[0]
            for committed in (False, True)
        )
    return latest, stable


def test_finds_offsets_by_time(copy: Path) -> None:
    found = Folders(str(copy))
    for offset in (0, 1, 777, 2999):
        for before_ms in (0, 1, 999):
            moment = FIRST_MS + 1000 * offset - before_ms
            assert found.offset_for_timestamp("t", 0, moment, read_committed=True) == offset
    after_all = FIRST_MS + 1000 * 3000
    assert found.offset_for_timestamp("t", 0, after_all, read_committed=False) == 3000
    assert found.offset_for_timestamp("t", 0, after_all, read_committed=True) is None
    assert found.offset_for_timestamp("t", 0, 1 << 60, read_committed=False) is None


@pytest.mark.parametrize("damage", ["zeros", "noise", "torn", "flipped"])
def test_what_a_crash_left_half_is_not_read(copy: Path, damage: str) -> None:
    log = max((copy / "t-0").glob("*.log"))
    data = log.read_bytes()
    end = {"zeros": 3001, "noise": 3001, "torn": 3000, "flipped": 3000}[damage]
    log.write_bytes(
        {
            "zeros": data + bytes(4096),
            "noise": data + os.urandom(4096),
            "torn": data[:-3],
            "flipped": data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
        }[damage]
    )
    assert Folders(str(copy)).earliest_and_latest("t", 0, read_committed=False) == (0, end)
    assert _latest_after_start(copy) == (end, 3000)


def test_looking_changes_nothing(copy: Path) -> None:
    snapshot = max((copy / "t-0").glob("*.snapshot"))
    snapshot.write_bytes(b"damaged")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    found = Folders(str(copy))
    found.earliest_and_latest("t", 0, read_committed=True)
    found.offset_for_timestamp("t", 0, FIRST_MS, read_committed=False)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_of_a_running_broker_only_what_it_wrote_down(tmp_path: Path) -> None:
    with RunnelBroker(data_dir=tmp_path / "data") as broker:
        plain = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        plain.produce("t", b"value")
        assert plain.flush(PATIENCE_S) == 0
        path = broker.data_dir / HIGH_WATERMARKS
        written = path.read_text() if path.exists() else ""
        found = Folders(str(broker.data_dir))
        if "t 0 1" not in written:
            assert found.earliest_and_latest("t", 0, read_committed=False) == (0, 0)
        broker.stop()
        found = Folders(str(broker.data_dir))
        assert found.earliest_and_latest("t", 0, read_committed=False) == (0, 1)


@pytest.mark.parametrize("how", ["clean", "killed"])
def test_kafkas_folders(how: str, tmp_path: Path) -> None:
    """After a clean stop to the end; after a kill no further than Kafka's last high watermark."""
    kafka_folders.unpack(tmp_path)
    expected: Folder = kafka_folders.served()[how]
    found = Folders(str(tmp_path / how))
    assert found.cluster_id == expected["cluster_id"]
    for topic, told in expected["topics"].items():
        assert found.partitions(topic) == list(range(len(told["watermarks"])))
        assert found.topic_id(topic) == _kafka_id(told["topic_id"])
        for partition, (low, high) in enumerate(told["watermarks"]):
            first, latest = found.earliest_and_latest(topic, partition, read_committed=False)
            assert first == low
            assert latest == high if how == "clean" else latest <= high


def _kafka_id(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def test_says_what_is_wrong(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(OfflineError, match="cannot be read"):
        Folders(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(OfflineError, match="no data folder"):
        Folders(str(tmp_path / "empty"))
    found = Folders(str(copy))
    with pytest.raises(OfflineError, match="has no topic nope; it has: "):
        found.partitions("nope")
    with pytest.raises(OfflineError, match="no partition 7 of topic t; it has 0"):
        found.earliest_and_latest("t", 7, read_committed=False)


def test_a_partition_may_lie_in_any_of_several_folders(copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(copy / "meta.properties", other)
    shutil.copytree(copy / "t-0", other / "u-3")
    found = Folders(f"{copy}, {other}/")
    assert found.partitions("t") == [0] and found.partitions("u") == [3]
