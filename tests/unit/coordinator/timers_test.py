"""Timers: what is due runs once, in its order, at the last time that was asked for."""

from hypothesis import given
from hypothesis import strategies as st

from runnel.coordinator.timers import AT_ONCE_MAX, NEVER_MS, SWEPT_AT_LEAST, Timer, Timers


def _timer(timers: Timers, done: list[str], name: str, at_ms: int) -> Timer:
    timer = Timer(timers, lambda: done.append(name))
    timer.start(at_ms)
    return timer


def test_what_is_due_runs_in_order_and_once() -> None:
    timers, done = Timers(), list[str]()
    for name, at_ms in (("late", 30), ("early", 10), ("also early", 10)):
        _timer(timers, done, name, at_ms)
    assert timers.next_ms() == 10
    timers.run_due(9)
    assert done == []
    timers.run_due(10)
    assert done == ["early", "also early"]
    timers.run_due(1000)
    assert done == ["early", "also early", "late"]
    assert timers.next_ms() == NEVER_MS


def test_one_that_is_put_off_costs_no_entry() -> None:
    timers, done = Timers(), list[str]()
    timer = _timer(timers, done, "session", 10)
    for at_ms in range(11, 2000):
        timer.start(at_ms)
    assert timers.next_ms() == 10
    timers.run_due(10)
    assert done == []
    assert timers.next_ms() == 1999
    timers.run_due(1999)
    assert done == ["session"]


def test_what_was_cancelled_leaves_long_before_its_time() -> None:
    timers, done = Timers(), list[str]()
    kept = [_timer(timers, done, f"kept {number}", 10_000 + number) for number in range(50)]
    for number in range(20 * SWEPT_AT_LEAST):
        _timer(timers, done, "cancelled", 2**31 + number).cancel()
        assert len(timers) <= 2 * SWEPT_AT_LEAST
    again = _timer(timers, done, "again", 2**31)
    again.cancel()
    for _ in range(2 * SWEPT_AT_LEAST):
        _timer(timers, done, "cancelled", 2**31).cancel()
    again.start(20_000)
    for now_ms in (10_100, 20_000):
        timers.run_due(now_ms)
    assert done == [*(f"kept {number}" for number in range(len(kept))), "again"]


def test_one_that_is_drawn_nearer_runs_once() -> None:
    timers, done = Timers(), list[str]()
    told: list[int] = []
    timers.on_earlier = lambda: told.append(timers.next_ms())
    timer = _timer(timers, done, "it", 100)
    timer.start(50)
    timer.start(60)
    timers.run_due(55)
    timers.run_due(60)
    timers.run_due(100)
    assert done == ["it"]
    assert told[:2] == [100, 50]


def test_a_cancelled_one_does_not_run_even_if_another_cancels_it_at_that_moment() -> None:
    timers, done = Timers(), list[str]()
    second = Timer(timers, lambda: done.append("second"))
    first = Timer(timers, second.cancel)
    first.start(10)
    second.start(10)
    assert second.is_running
    timers.run_due(10)
    assert done == []
    assert not second.is_running
    second.start(20)
    timers.run_due(20)
    assert done == ["second"]


def test_what_starts_itself_again_gives_way() -> None:
    """Long work is done in steps: the loop must have a turn between them."""
    timers, done = Timers(), list[int]()

    def step() -> None:
        done.append(len(done))
        if len(done) < 5:
            timer.start(10)

    timer = Timer(timers, step)
    timer.start(10)
    for turn in range(1, 6):
        timers.run_due(10)
        assert len(done) == turn
    timers.run_due(10)
    assert len(done) == 5


def test_one_that_raises_takes_no_other_with_it() -> None:
    timers, done = Timers(), list[str]()

    def fail() -> None:
        _timer(timers, done, "started meanwhile", 5)
        raise ValueError

    Timer(timers, fail).start(10)
    _timer(timers, done, "next", 10)
    for _ in range(3):
        try:
            timers.run_due(10)
        except ValueError:
            continue
    assert sorted(done) == ["next", "started meanwhile"]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["start", "cancel", "run"]), st.integers(0, 9))
    )
)
def test_any_order_of_starts_cancels_and_runs(steps: list[tuple[int, str, int]]) -> None:
    """The model: a time per timer, and time only goes forward."""
    timers, done = Timers(), list[int]()
    found = [Timer(timers, lambda number=number: done.append(number)) for number in range(6)]  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    expected: dict[int, int] = {}
    now_ms = 0
    for number, what, delay_ms in steps:
        if what == "start":
            found[number].start(now_ms + delay_ms)
            expected[number] = now_ms + delay_ms
        elif what == "cancel":
            found[number].cancel()
            expected.pop(number, None)
        else:
            now_ms += delay_ms
            due = {each for each, at_ms in expected.items() if at_ms <= now_ms}
            timers.run_due(now_ms)
            assert set(done) == due and len(done) == len(due)
            done.clear()
            for each in due:
                del expected[each]
        assert [timer.is_running for timer in found] == [each in expected for each in range(6)]
        assert timers.next_ms() <= min(expected.values(), default=NEVER_MS)


def test_very_many_that_are_due_together_give_way() -> None:
    timers, done = Timers(), list[str]()
    names = [f"session {number}" for number in range(1000)]
    for name in names:
        _timer(timers, done, name, 10)
    timers.run_due(10)
    assert 0 < len(done) <= AT_ONCE_MAX
    turns = 1
    while timers.next_ms() <= 10:
        timers.run_due(10)
        turns += 1
    assert done == names
    assert turns >= 1000 // AT_ONCE_MAX
