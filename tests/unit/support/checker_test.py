"""Each anomaly, planted in a history that is right but for it, is found under its name; and what is
no anomaly is not."""

from collections.abc import Callable, Sequence

import pytest

from runnel.types import TopicPartition
from tests.support.checker import check
from tests.support.history import History, Send

HERE = TopicPartition("t", 0)


class Story:
    """Writes a history in a few words; offsets are where the next record would go."""

    def __init__(self) -> None:
        self.history = History()

    def sent(
        self, base_offset: int, *values: str, producer: str = "p", idempotent: bool = True,
        attempts: int = 1,
    ) -> Send:  # fmt: skip
        send = self.history.send(
            "producer", HERE, values, producer=producer, idempotent=idempotent
        )  # fmt: skip
        send.attempts = attempts
        self.history.ok(send, base_offset)
        return send

    def polled(
        self, position: int, values: Sequence[str], *, client: str = "c", high_watermark: int = 99,
        seeked: bool = False, offsets: Sequence[int] | None = None, start: int = 0,
    ) -> None:  # fmt: skip
        places = offsets or range(position, position + len(values))
        self.history.polled(
            client, HERE, position, list(zip(places, values, strict=True)),
            high_watermark=high_watermark, log_start_offset=start,
            began=self.history.tick(), seeked=seeked,
        )  # fmt: skip

    def latest(self, offset: int) -> None:
        self.history.latest("c", HERE, offset, began=self.history.tick())

    def final(self, *values: str, start: int = 0, offsets: Sequence[int] | None = None) -> None:
        places = list(offsets or range(start, start + len(values)))
        self.history.final_read(
            HERE, list(zip(places, values, strict=True)), log_start_offset=start,
            end_offset=places[-1] + 1 if places else start, began=self.history.tick(),
        )  # fmt: skip


def lost_write(story: Story) -> None:
    story.sent(0, "a")
    story.sent(1, "b")
    story.polled(0, ["a", "b"], high_watermark=2)
    story.final("a")


def lost_by_a_crash_that_may_not(story: Story) -> None:
    story.sent(0, "a")
    story.sent(1, "b")
    story.polled(0, ["a", "b"], high_watermark=2)
    story.history.lossy_crash({HERE: 2})
    story.final("a")


def unseen(story: Story) -> None:
    story.sent(0, "a")
    story.sent(1, "b")
    story.final("a")


def duplicate(story: Story) -> None:
    story.sent(0, "a", attempts=2)
    story.sent(2, "b")
    story.final("a", "a", "b")


def duplicate_of_one_attempt(story: Story) -> None:
    story.sent(0, "a", idempotent=False)
    story.sent(2, "b")
    story.final("a", "a", "b")


def inconsistent_offsets(story: Story) -> None:
    story.history.send("producer", HERE, ["a"])
    story.history.send("producer", HERE, ["b"])
    story.polled(0, ["a"])
    story.polled(0, ["b"], client="d")


def inconsistent_offset_of_an_answer(story: Story) -> None:
    story.sent(1, "a")
    story.final("a")


def aborted_read(story: Story) -> None:
    send = story.history.send("producer", HERE, ["a"])
    story.history.failed(send, "CORRUPT_MESSAGE")
    story.final("a")


def phantom_read(story: Story) -> None:
    story.final("a")


def reordered_sends(story: Story) -> None:
    first = story.history.send("producer", HERE, ["a"], producer="p")
    second = story.history.send("producer", HERE, ["b"], producer="p")
    story.history.ok(second, 0)
    story.history.ok(first, 1)
    story.final("b", "a")


def reordered_across_producers(story: Story) -> None:
    story.sent(1, "a", producer="p")
    story.sent(0, "b", producer="q")
    story.final("b", "a")


def nonmonotonic_poll(story: Story) -> None:
    story.sent(0, "a", "b")
    story.polled(0, ["a", "b"])
    story.polled(2, ["b"], offsets=[1])


def poll_skip(story: Story) -> None:
    story.sent(0, "a", "b", "c")
    story.polled(0, ["a"])
    story.polled(1, ["c"], offsets=[2])


def skip_inside_a_poll(story: Story) -> None:
    story.sent(0, "a", "b", "c")
    story.polled(0, ["a", "c"], offsets=[0, 2])


def offset_gap(story: Story) -> None:
    story.sent(0, "a")
    story.sent(2, "b")
    story.final("a", "b", offsets=[0, 2])


def watermark_regressed(story: Story) -> None:
    story.latest(5)
    story.latest(4)


def watermark_below_an_acknowledgement(story: Story) -> None:
    story.sent(0, "a", "b")
    story.latest(1)


def watermark_regressed_after_a_crash(story: Story) -> None:
    story.latest(9)
    story.history.lossy_crash({HERE: 3})
    story.sent(4, "a")
    story.latest(4)


def read_past_watermark(story: Story) -> None:
    story.sent(0, "a", "b")
    story.polled(0, ["a", "b"], high_watermark=1)


def deleted_early(story: Story) -> None:
    story.sent(0, "a", "b")
    story.history.trim(HERE, 1)
    story.final(start=2)


PLANTED = {
    "lost-write": [lost_write, lost_by_a_crash_that_may_not],
    "unseen": [unseen],
    "duplicate": [duplicate, duplicate_of_one_attempt],
    "inconsistent-offsets": [inconsistent_offsets],
    "aborted-read": [aborted_read],
    "phantom-read": [phantom_read],
    "nonmonotonic-send": [reordered_sends, reordered_across_producers],
    "nonmonotonic-poll": [nonmonotonic_poll],
    "poll-skip": [poll_skip, skip_inside_a_poll],
    "offset-gap": [offset_gap],
    "watermark-regressed": [
        watermark_regressed,
        watermark_below_an_acknowledgement,
        watermark_regressed_after_a_crash,
    ],
    "read-past-watermark": [read_past_watermark],
    "deleted-early": [deleted_early],
}


@pytest.mark.parametrize(
    ("name", "plant"), [(name, plant) for name, plants in PLANTED.items() for plant in plants]
)
def test_a_planted_anomaly_is_found_and_no_other(name: str, plant: Callable[[Story], None]) -> None:
    story = Story()
    plant(story)
    found = {anomaly.name for anomaly in check(story.history).anomalies}
    assert name in found
    assert found <= {name, "watermark-regressed"}  # a log that lost its end shows both


def test_an_answer_with_a_wrong_offset_is_found() -> None:
    story = Story()
    inconsistent_offset_of_an_answer(story)
    assert check(story.history).anomalies


def right(story: Story) -> None:
    story.sent(0, "a", "b")
    story.polled(0, ["a"], high_watermark=2)
    story.polled(1, ["b"], high_watermark=2)
    story.latest(2)
    story.final("a", "b")
    story.final("a", "b")


def unknown_outcomes_may_be_there_or_not(story: Story) -> None:
    story.history.send("producer", HERE, ["a"])
    story.history.send("producer", HERE, ["b"])
    story.final("b")


def a_plain_producer_repeats_itself(story: Story) -> None:
    story.sent(0, "a", idempotent=False, attempts=2)
    story.final("a", "a")


def a_lossy_crash_takes_the_tail(story: Story) -> None:
    story.sent(0, "a")
    story.sent(1, "b")
    story.polled(0, ["a", "b"], high_watermark=2)
    story.latest(2)
    story.history.lossy_crash({HERE: 1})
    story.latest(1)
    story.sent(1, "c")
    story.polled(1, ["c"], high_watermark=2, client="d")
    story.final("a", "c")


def an_answer_from_before_the_crash_comes_after_it(story: Story) -> None:
    began = story.history.tick()
    story.history.send("producer", HERE, ["a"])
    story.history.lossy_crash({HERE: 0})
    story.sent(0, "b")
    story.history.polled(
        "c", HERE, 0, [(0, "a")], high_watermark=1, log_start_offset=0, began=began
    )
    story.final("b")


def records_below_a_trim_are_gone(story: Story) -> None:
    story.sent(0, "a", "b")
    story.history.trim(HERE, 1)
    story.final("b", start=1)


@pytest.mark.parametrize(
    "tell",
    [
        right,
        unknown_outcomes_may_be_there_or_not,
        a_plain_producer_repeats_itself,
        a_lossy_crash_takes_the_tail,
        an_answer_from_before_the_crash_comes_after_it,
        records_below_a_trim_are_gone,
    ],
)
def test_what_is_right_passes(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert check(story.history).anomalies == []


def test_retention_may_delete_where_it_is_allowed_to() -> None:
    story = Story()
    story.sent(0, "a", "b")
    story.final("b", start=1)
    assert check(story.history, may_delete={HERE}).anomalies == []
