"""The assignors on the broker: complete, fair, sticky, and fast enough not to be noticed."""

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.coordinator.groups.assignor import MemberSpec, Spec
from runnel.coordinator.groups.consumer_records import Target
from runnel.coordinator.groups.range_assignor import assign_ranges
from runnel.coordinator.groups.uniform_assignor import assign_uniformly

TOPICS = [bytes([number]) * 16 for number in range(5)]


def spec_of(
    counts: dict[bytes, int], members: dict[str, frozenset[bytes]], before: dict[str, Target]
) -> Spec:
    return Spec(
        {
            name: MemberSpec(None, topics.intersection(counts), before.get(name, {}))
            for name, topics in sorted(members.items())
        },
        counts,
    )


def sizes(targets: dict[str, Target], names: set[str]) -> Counter[str]:
    found = Counter(dict.fromkeys(names, 0))
    for name, target in targets.items():
        found[name] += sum(map(len, target.values()))
    return found


def ensure_complete(spec: Spec, targets: dict[str, Target]) -> None:
    """Every partition that somebody subscribes to has one owner, who subscribes to it."""
    owners: Counter[tuple[bytes, int]] = Counter()
    for name, target in targets.items():
        for topic_id, indexes in target.items():
            assert topic_id in spec.members[name].topic_ids
            owners.update((topic_id, index) for index in indexes)
    wanted = {topic_id for member in spec.members.values() for topic_id in member.topic_ids}
    assert owners == Counter(
        (topic_id, index) for topic_id in wanted for index in range(spec.partition_counts[topic_id])
    )


counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)
some_topics = st.frozensets(st.sampled_from(TOPICS))
subscriptions = st.dictionaries(st.sampled_from("abcdefgh"), some_topics, min_size=1)


@given(counts, subscriptions, subscriptions)
def test_every_partition_has_one_owner_that_subscribes_to_it(
    counts: dict[bytes, int],
    first: dict[str, frozenset[bytes]],
    then: dict[str, frozenset[bytes]],
) -> None:
    for assign in (assign_uniformly, assign_ranges):
        spec = spec_of(counts, first, {})
        targets = assign(spec)
        ensure_complete(spec, targets)
        grown = {topic_id: count + 1 for topic_id, count in counts.items()}
        spec = spec_of(grown, then, targets)
        ensure_complete(spec, assign(spec))


@given(counts, st.sets(st.sampled_from("abcdefgh"), min_size=1), some_topics)
def test_uniform_is_fair_and_sticky_if_all_subscribe_alike(
    counts: dict[bytes, int], names: set[str], topics: frozenset[bytes]
) -> None:
    members = dict.fromkeys(names, topics)
    before = assign_uniformly(spec_of(counts, members, {}))
    loads = sizes(before, names)
    assert max(loads.values()) - min(loads.values()) <= 1
    assert assign_uniformly(spec_of(counts, members, before)) == before
    joined = {**members, "0": topics}
    after = assign_uniformly(spec_of(counts, joined, before))
    total, moved = sum(loads.values()), 0
    for name in names:
        for topic_id, indexes in after.get(name, {}).items():
            moved += len(indexes - before[name].get(topic_id, frozenset()))
    assert moved == 0, "who was there gains nothing when somebody joins"
    assert sizes(after, {"0"})["0"] == total // len(joined)


@given(counts, subscriptions)
def test_uniform_leaves_no_move_that_would_be_fairer(
    counts: dict[bytes, int], members: dict[str, frozenset[bytes]]
) -> None:
    spec = spec_of(counts, members, {})
    targets = assign_uniformly(spec)
    loads = sizes(targets, set(members))
    for name, target in targets.items():
        for topic_id in target:
            for other in members:
                if topic_id in spec.members[other].topic_ids:
                    assert loads[name] - loads[other] <= 1
    assert assign_uniformly(spec_of(counts, members, targets)) == targets


def test_range_lays_topics_side_by_side() -> None:
    members = {
        "c": MemberSpec("1st", frozenset(TOPICS[:2]), {}),
        "a": MemberSpec(None, frozenset(TOPICS[:2]), {}),
        "b": MemberSpec(None, frozenset(TOPICS[:1]), {}),
    }
    found = assign_ranges(Spec(members, {TOPICS[0]: 7, TOPICS[1]: 4}))
    assert found == {
        "c": {TOPICS[0]: {0, 1, 2}, TOPICS[1]: {0, 1}},
        "a": {TOPICS[0]: {3, 4}, TOPICS[1]: {2, 3}},
        "b": {TOPICS[0]: {5, 6}},
    }


@pytest.mark.parametrize("assign", [assign_uniformly, assign_ranges])
@pytest.mark.parametrize("alike", [True, False])
def test_a_thousand_members_and_partitions_take_no_time_to_speak_of(
    assign: object, alike: bool
) -> None:
    assert callable(assign)
    counts = {number.to_bytes(16, "big"): 100 for number in range(10)}
    everything = frozenset(counts)
    few = [frozenset([each, min(counts)]) for each in counts]
    members = {f"m{n:04}": everything if alike else few[n % 10] for n in range(1_000)}
    before = assign(spec_of(counts, members, {}))
    del members["m0500"]
    members["late"] = everything
    spec = spec_of(counts, members, before)
    began = time.process_time()
    targets = assign(spec)
    assert time.process_time() - began < 1.0  # a tenth of it, where nothing else runs
    ensure_complete(spec, targets)
