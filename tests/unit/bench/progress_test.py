"""The time left follows what the same steps took before."""

import pytest

from bench.progress import Steps, shown, spelled

STEPS = [("kafka", "fetch"), ("runnel", "fetch")]


def test_time_left_is_that_of_the_round_before() -> None:
    steps = Steps(STEPS * 3)
    assert steps.left_s() is None
    steps.done(STEPS[0], 10.0)
    assert steps.left_s() == 50.0
    steps.done(STEPS[1], 2.0)
    assert steps.left_s() == 24.0
    for step in STEPS * 2:
        steps.done(step, 1.0)
    assert steps.left_s() == 0.0


def test_a_step_that_fails_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(STEPS) as progress:
        with pytest.raises(OSError, match="gone"), progress.step(STEPS[0], "first"):
            raise OSError("gone")
        with progress.step(STEPS[1], "second"):
            pass
    first, second = capsys.readouterr().err.splitlines()
    assert first == "1 of 2, time left not known yet: first"
    assert second.startswith("2 of 2, ") and second.endswith("left: second")


@pytest.mark.parametrize(("seconds", "text"), [(59.6, "60 s left"), (150.0, "2 min left")])
def test_spelled(seconds: float, text: str) -> None:
    assert spelled(seconds) == text
