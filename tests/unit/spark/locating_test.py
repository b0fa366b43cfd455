"""Files are read only where they are sure to be those of the broker that was asked."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runnel.arrow.errors import SourceError
from runnel.arrow.locating import ANY_NODE, Locator, _Owner, _places
from runnel.arrow.ranges import Place, Range, Scan
from runnel.client.cluster import Cluster, addresses_of
from runnel.testing import RunnelBroker
from runnel.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

PIECE = Range("t", 0, 0, 10)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunnelBroker]:
    with RunnelBroker(data_dir=tmp_path / "data") as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def cluster(broker: RunnelBroker) -> Iterator[Cluster]:
    with Cluster(addresses_of(broker.bootstrap_servers)) as found:
        yield found


def _scan(broker: RunnelBroker, mode: str = "auto", path: str | None = None) -> Scan:
    client = {"bootstrap.servers": broker.bootstrap_servers}
    return Scan(client, read_mode=mode, path=path)


def _place(scan: Scan, cluster: Cluster | None) -> Place | None:
    (piece,) = Locator(scan).placed([PIECE], cluster)
    assert piece[:4] == PIECE[:4]
    return piece.place


def test_a_broker_on_this_machine_says_where(broker: RunnelBroker, cluster: Cluster) -> None:
    for mode in ("auto", "local"):
        place = _place(_scan(broker, mode), cluster)
        assert place is not None and place.folders == (str(broker.data_dir),)
        assert place.topic_id == cluster.topic("t").topic_id
    assert _place(_scan(broker, "broker"), cluster) is None


def test_what_it_says_must_be_here(broker: RunnelBroker, cluster: Cluster) -> None:
    """As of a broker in a container: its folder is another's here, or nobody's."""
    meta = broker.data_dir / "meta.properties"
    ours = meta.read_text()
    meta.write_text(ours.replace("cluster.id=", "cluster.id=another-"))
    assert _place(_scan(broker), cluster) is None
    meta.write_text(ours)
    assert _place(_scan(broker), cluster) is not None
    elsewhere = broker.data_dir.rename(broker.data_dir.with_name("elsewhere"))
    assert _place(_scan(broker), cluster) is None
    with pytest.raises(SourceError, match=r"readMode=local: the folders .* Name the data"):
        _place(_scan(broker, "local"), cluster)
    elsewhere.rename(broker.data_dir)


def test_a_path_of_another_cluster_is_refused(
    broker: RunnelBroker, cluster: Cluster, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=0\n")
    with pytest.raises(SourceError, match="belongs to cluster another, and"):
        _place(_scan(broker, path=str(other)), cluster)
    both = f"{broker.data_dir},{tmp_path / 'third'}"
    shutil.copytree(other, tmp_path / "third")
    text = (broker.data_dir / "meta.properties").read_text().replace("node.id=", "node.id=7")
    (tmp_path / "third" / "meta.properties").write_text(text)
    with pytest.raises(SourceError, match="folders of several brokers"):
        _place(_scan(broker, path=both), cluster)
    with pytest.raises(SourceError, match="names no data folder"):
        _place(_scan(broker, path=" , "), cluster)


def test_a_path_need_not_be_on_the_driver(broker: RunnelBroker, cluster: Cluster) -> None:
    place = _place(_scan(broker, path="/mnt/broker"), cluster)
    assert place is not None and place.folders == ("/mnt/broker",)


def test_without_a_broker_the_folder_is_all(broker: RunnelBroker, tmp_path: Path) -> None:
    copy = shutil.copytree(broker.data_dir, tmp_path / "copy")
    scan = replace(_scan(broker, path=str(copy)), client={})
    place = _place(scan, None)
    assert place is not None and place.folders == (str(copy),)
    with pytest.raises(SourceError, match="has no topic nope"):
        Locator(scan).placed([PIECE._replace(topic="nope")], None)


def test_the_cluster_is_asked_once(broker: RunnelBroker, cluster: Cluster) -> None:
    locator = Locator(_scan(broker))
    first = locator.placed([PIECE], cluster)
    cluster.close()
    broker.stop()
    assert locator.placed([PIECE], cluster) == first


def test_another_leader_has_the_newer_records() -> None:
    """A replica may hold what was never committed, so its files are not read."""
    rows = [
        MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1, 2]),
        MetadataResponsePartition(partition_index=1, leader_id=2, replica_nodes=[1, 2]),
        MetadataResponsePartition(partition_index=2, leader_id=3, replica_nodes=[3]),
    ]
    topic = MetadataResponseTopic(name="t", topic_id=bytes(15) + b"1", partitions=rows)
    told = MetadataResponse(topics=[topic])
    found = _places(told, [_Owner(("/one",), 1)])
    assert {at: place and place.folders for at, place in found.items()} == {
        ("t", 0): ("/one",),
        ("t", 1): None,
        ("t", 2): None,
    }
    unknown = _places(told, [_Owner(("/any",), ANY_NODE)])
    assert [place and place.folders for place in unknown.values()] == [None, None, ("/any",)]
