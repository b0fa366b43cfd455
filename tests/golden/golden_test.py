"""Runnel says what Kafka 4.3 said."""

import pytest

from tests.golden.desk_stage import replay
from tests.golden.found import RECORDED, dialogues, record_of
from tests.golden.wording import first_difference

KNOWN = dialogues()
# What is still being built. A name leaves this set as soon as its dialogue holds.
AWAITED: set[str] = set()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_runnel_says_what_kafka_said(name: str) -> None:
    if name in AWAITED:
        pytest.xfail("awaited")
    assert record_of(name).exists(), f"record it: python -m tests.golden.record {name}"
    expected, found = record_of(name).read_text(), replay(KNOWN[name])
    assert found == expected, first_difference(expected, found)


def test_every_record_has_its_dialogue() -> None:
    assert {path.stem for path in RECORDED.glob("*.txt")} == set(KNOWN)
