"""What the generator sends: batches that decode to their records, replies of a known shape."""

import pytest

from runnel.bench.frames import make_batch, produce_reply, produce_reply_shape, values
from runnel.bench.load import FIFTY_PARTITIONS, LARGE, SMALL, UNBATCHED, Load
from runnel.client.raw import Topic, WireClient
from runnel.native import records
from runnel.native.compression import Compression
from runnel.wire.apis import APIS, ApiKey

MAX_BATCH_BYTES = 1_048_588  # Kafka's default of message.max.bytes
TOPIC = Topic("some", bytes(16), 50)


class Versions(WireClient):
    """A client that knows its versions and has no broker."""

    def __init__(self) -> None:
        pass

    def version_of(self, key: int) -> int:
        return APIS[key].versions[-1]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_a_batch_holds_the_values(codec: Compression) -> None:
    batch = make_batch(100, 500, codec)
    columns = records.decode(batch.data, max_records=500, max_bytes=1 << 20, verify_crc=True)
    assert columns.row_count == batch.record_count == 500


def test_values_are_all_different_and_compress_like_text() -> None:
    made = list(values(1024, 200))
    assert len(set(made)) == 200
    assert {len(value) for value in made} == {1024}
    plain, packed = (
        len(make_batch(1024, 200, codec).data) for codec in (Compression.NONE, Compression.LZ4)
    )
    assert 1.2 < plain / packed < 5


def test_the_size_of_a_batch_does_not_depend_on_the_process() -> None:
    assert len(LARGE.batch().data) == len(LARGE.batch().data)


@pytest.mark.parametrize("load", [LARGE, SMALL, UNBATCHED, FIFTY_PARTITIONS])
def test_batches_are_below_the_limit_of_brokers(load: Load) -> None:
    assert len(load.batch().data) <= MAX_BATCH_BYTES


@pytest.mark.parametrize("partition_count", [1, 50])
def test_a_failure_of_any_partition_shows_in_the_marks(partition_count: int) -> None:
    client = Versions()
    version = client.version_of(ApiKey.PRODUCE)
    shape = produce_reply_shape(client, TOPIC, partition_count)
    good = bytes(4) + produce_reply(TOPIC, version, 0, partition_count)
    bad = bytes(4) + produce_reply(TOPIC, version, 6, partition_count)
    assert shape.size == len(good)
    assert not any(good[at] for at in shape.zeros)
    assert sum(bad[at] != 0 for at in shape.zeros) == partition_count
