"""A patch that no longer applies would plant nothing: it must move with the code."""

from pathlib import Path

import pytest

from tests.planted.run import ROOT, apply, patches


def test_all_of_them_are_there() -> None:
    assert [patch.stem for patch in patches()] == [
        "aborted-offsets-count",
        "lost-generation",
        "lost-producer-state",
        "no-crc-check",
        "no-fsync",
        "no-truncation",
        "offset-off-by-one",
        "reply-before-commit",
    ]


@pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.stem)
def test_a_planted_bug_still_applies(patch: Path) -> None:
    apply(patch, ROOT, check=True)
