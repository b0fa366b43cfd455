"""What a segment is said to hold."""

from runnel.config.topic import LogConfig
from runnel.inspect.describing import describe_segment
from runnel.inspect.folders import look_into
from tests.support.stores import FOLDER
from tests.support.writing import T0, World


def test_a_compacted_segment_begins_when_its_records_do() -> None:
    """The base timestamp of a batch with tombstones is when those go, not when they came."""
    world = World(LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0))
    world.put(("a", "1"))
    world.put(("a", None))
    world.put(("b", "1"))
    world.clean()
    (partition,) = look_into(world.disk, FOLDER).partitions
    first = describe_segment(world.disk, partition.segments[0])
    assert first is not None and first.first_timestamp == T0
