"""Which brokers hold the replicas of a new topic's partitions. Pure.

Brokers are taken in turn from one order in which the racks alternate, so that neighbours in it,
the replicas of one partition, are in different racks as far as there are racks. Without racks
each further round over the brokers shifts the followers by one more, so that no two brokers share
everything.
"""

from collections.abc import Sequence

from runnel.cluster.image import Broker


def place(
    brokers: Sequence[Broker], partition_count: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """Broker ids by partition, the preferred leader first. `start` decides where to begin."""
    order = _alternating_racks(brokers)
    count = len(order)
    assert 1 <= replication_factor <= count, (replication_factor, count)
    # With racks a shift would bring two replicas of one partition into the same rack.
    may_shift = count > 1 and len({broker.rack for broker in brokers}) == 1
    placed: list[tuple[int, ...]] = []
    for index in range(partition_count):
        first = (start + index) % count
        turn = (start + index) // count
        followers = [order[(first + 1 + n) % count] for n in range(count - 1)]
        shift = turn % (count - 1) if may_shift else 0
        shifted = followers[shift:] + followers[:shift]
        placed.append((order[first], *shifted[: replication_factor - 1]))
    return placed


def _alternating_racks(brokers: Sequence[Broker]) -> list[int]:
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.id):
        racks.setdefault(broker.rack or "", []).append(broker.id)
    order: list[int] = []
    columns = [racks[rack] for rack in sorted(racks)]
    for position in range(max(len(column) for column in columns)):
        order += [column[position] for column in columns if position < len(column)]
    return order
