"""Every message in every version reads and writes as Kafka's own Java does, byte for byte."""

from collections import Counter

import pytest

from runnel.wire.compiler import codec_for
from tests.unit.wire.recording import from_json, instances, message_types, pairs


def test_every_pair_agrees_with_java() -> None:
    agreed: Counter[tuple[str, int]] = Counter()
    tagged = 0
    for instance in instances():
        cls = message_types()[instance.message]
        codec = codec_for(cls, instance.version)
        expected = from_json(cls, instance.value)
        where = f"{instance.message} v{instance.version} {instance.kind}"
        message, end = codec.read(memoryview(instance.encoded), 0)
        assert message == expected, where
        assert end == len(instance.encoded), where
        assert codec.write(expected) == instance.encoded, where
        if instance.with_unknown_tags is not None:
            message, end = codec.read(instance.with_unknown_tags, 0)
            assert message == expected, where
            assert end == len(instance.with_unknown_tags), where
            tagged += 1
        agreed[instance.message, instance.version] += 1
    missing = sorted(set(pairs()) - agreed.keys())
    assert not missing, f"never recorded: {missing}"
    print(
        f"{len(agreed)} of {len(set(pairs()))} (message, version) pairs agree with Kafka's Java: "
        f"{agreed.total()} instances, {tagged} of them also with unknown tagged fields"
    )


@pytest.mark.parametrize("kind", ["default", "sparse", "random"])
def test_the_recording_holds_each_kind_for_nearly_every_pair(kind: str) -> None:
    recorded = {(each.message, each.version) for each in instances() if each.kind == kind}
    assert len(set(pairs()) - recorded) == 0
