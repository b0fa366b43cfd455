"""Judges a history. The names of anomalies are Jepsen's where Jepsen has one.

  lost-write            acknowledged, readers got past it, and it is gone
  unseen                acknowledged, and nobody ever read as far as that
  duplicate             at two offsets, though its producer is idempotent or sent it once
  inconsistent-offsets  one offset had two values
  aborted-read          (G1a) a value was read whose write had failed
  phantom-read          a value was read that nobody wrote
  nonmonotonic-send     a write stands before one that was over, or sent, earlier
  nonmonotonic-poll     a consumer that did not seek was given an offset it had passed
  poll-skip             a consumer that did not seek was not given an offset in between
  offset-gap            the log itself misses an offset
  watermark-regressed   the end of a partition was seen to go back
  read-past-watermark   a record was given out above the high watermark of the same answer
  deleted-early         the log starts later than anybody asked for

Only a `LossyCrash` may take acknowledged records, and only those from its offset on: what stood
there is forgotten, and an operation that overlaps the crash says nothing about those offsets.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from runnel.types import TopicPartition
from tests.support.history import (
    Event,
    FinalRead,
    History,
    Latest,
    LossyCrash,
    Outcome,
    Poll,
    Send,
    Trim,
)


class Anomaly(NamedTuple):
    name: str
    partition: TopicPartition
    detail: str

    def __str__(self) -> str:
        return f"{self.name} in {self.partition}: {self.detail}"


@dataclass
class Verdict:
    anomalies: list[Anomaly] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    def add(self, other: "Verdict") -> None:
        self.anomalies += other.anomalies
        for name, count in other.counts.items():
            self.count(name, count)


def check(history: History, *, may_delete: Collection[TopicPartition] = ()) -> Verdict:
    """`may_delete`: partitions whose retention may take records at any time."""
    verdict = Verdict()
    found: dict[TopicPartition, list[Event]] = {}
    crashes: list[LossyCrash] = []
    for event in history.events:
        if isinstance(event, LossyCrash):
            crashes.append(event)
        else:
            found.setdefault(event.partition, []).append(event)
    for partition in sorted(found):
        floors = [
            (crash.at, crash.may_lose_from[partition])
            for crash in crashes
            if partition in crash.may_lose_from
        ]
        judge = _Judge(partition, found[partition], floors, verdict)
        judge.run(may_delete=partition in may_delete)
    return verdict


class _Judge:
    """One partition's part of the history."""

    def __init__(
        self,
        partition: TopicPartition,
        events: list[Event],
        floors: list[tuple[int, int]],
        verdict: Verdict,
    ) -> None:
        self.partition = partition
        self.floors = floors  # when, and from which offset on records may be lost
        self.verdict = verdict
        self.sends = [event for event in events if isinstance(event, Send)]
        self.polls = [event for event in events if isinstance(event, Poll)]
        self.latest = [event for event in events if isinstance(event, Latest)]
        self.finals = [event for event in events if isinstance(event, FinalRead)]
        self.trims = [event for event in events if isinstance(event, Trim)]
        self.reads: list[Poll | FinalRead] = [*self.polls, *self.finals]
        self.send_of = {value: send for send in self.sends for value in send.values}

    def run(self, *, may_delete: bool) -> None:
        self.count_sends()
        self.check_values()
        self.check_offsets()
        self.check_order()
        self.check_polls()
        self.check_watermark()
        for final in self.finals:
            self.check_final(final)
        if not may_delete:
            self.check_start()

    def count_sends(self) -> None:
        """A value that was read before its producer sent it again, with success, was recognised."""
        read_at: dict[str, int] = {}
        for poll in self.polls:
            for _, value in poll.records:
                read_at.setdefault(value, poll.ended)
        for send in self.sends:
            self.verdict.count(f"sends_{send.outcome.value}")
            is_acknowledged = send.idempotent and send.outcome is Outcome.OK
            if is_acknowledged and read_at.get(send.values[0], send.ended) < send.repeated:
                self.verdict.count("duplicates_suppressed")

    def report(self, name: str, detail: str) -> None:
        anomaly = Anomaly(name, self.partition, detail)
        if anomaly not in self.verdict.anomalies[-100:]:  # every later reader sees it again
            self.verdict.anomalies.append(anomaly)

    def may_be_lost(self, offset: int, began: int, before: int | None = None) -> bool:
        """Whether a crash after `began` may have taken what was written at `offset`."""
        return any(
            began < at and offset >= floor and (before is None or at < before)
            for at, floor in self.floors
        )

    def acknowledged(self) -> Iterable[tuple[Send, int, str]]:
        for send in self.sends:
            if send.outcome is Outcome.OK:
                for number, value in enumerate(send.values):
                    yield send, send.base_offset + number, value

    def check_values(self) -> None:
        for read in self.reads:
            for offset, value in read.records:
                send = self.send_of.get(value)
                if send is None:
                    self.report("phantom-read", f"{value!r} at {offset}, which nobody sent")
                elif send.outcome is Outcome.FAIL:
                    self.report("aborted-read", f"{value!r} at {offset}: {send.why}")

    def check_offsets(self) -> None:
        """One value for each offset, one offset for each value, between lossy crashes."""
        seen: list[tuple[int, int, int, str]] = [
            (send.ended, send.began, offset, value) for send, offset, value in self.acknowledged()
        ]
        for read in self.reads:
            seen += [(read.ended, read.began, offset, value) for offset, value in read.records]
        seen.sort()
        value_at: dict[int, str] = {}
        offset_of: dict[str, int] = {}
        floors = iter([*self.floors, (None, 0)])
        crash_at, floor = next(floors)
        for ended, began, offset, value in seen:
            while crash_at is not None and crash_at < ended:
                for lost in [known for known in value_at if known >= floor]:
                    offset_of.pop(value_at.pop(lost), None)
                crash_at, floor = next(floors)
            if any(began < at < ended and offset >= low for at, low in self.floors):
                continue
            known = value_at.setdefault(offset, value)
            if known != value:
                self.report("inconsistent-offsets", f"{known!r} and {value!r} at {offset}")
            elif offset_of.setdefault(value, offset) != offset:
                self.repeated(value, offset_of[value], offset)

    def repeated(self, value: str, first: int, second: int) -> None:
        send = self.send_of.get(value)
        if send is not None and (send.idempotent or send.attempts <= 1):
            self.report("duplicate", f"{value!r} at {first} and {second}")
        else:
            self.verdict.count("duplicates_of_plain_producers")

    def check_order(self) -> None:
        """What was acknowledged before another send began stands before it; so does what the same
        producer sent earlier, even if it did not wait for the answer."""
        acked = [
            send
            for send in self.sends
            if send.outcome is Outcome.OK
            and not self.may_be_lost(send.base_offset + len(send.values) - 1, send.began)
        ]
        ends = sorted((send.ended, send.base_offset) for send in acked)
        highest: list[int] = []
        for _, offset in ends:
            highest.append(max(offset, highest[-1] if highest else -1))
        last_of: dict[str, Send] = {}
        for send in sorted(acked, key=lambda send: send.began):
            before = bisect_left(ends, (send.began, -1))
            if before and highest[before - 1] > send.base_offset:
                self.report(
                    "nonmonotonic-send",
                    f"{send.values[0]!r} at {send.base_offset}, though {highest[before - 1]} was"
                    " acknowledged before it was sent",
                )
            if send.producer is not None:
                last = last_of.get(send.producer)
                if last is not None and last.base_offset > send.base_offset:
                    self.report(
                        "nonmonotonic-send",
                        f"{last.values[0]!r} at {last.base_offset}, the later"
                        f" {send.values[0]!r} at {send.base_offset}",
                    )
                last_of[send.producer] = send

    def check_polls(self) -> None:
        position_of: dict[str, int] = {}
        for poll in self.polls:
            expected = poll.position
            if not poll.seeked and poll.client in position_of:
                expected = position_of[poll.client]
            for offset, value in poll.records:
                if offset < expected:
                    self.report(
                        "nonmonotonic-poll",
                        f"{poll.client} was given {offset} ({value!r}) after {expected - 1}",
                    )
                elif offset > expected:
                    self.report("poll-skip", f"{poll.client} was given {offset} and not {expected}")
                if offset >= poll.high_watermark >= 0:
                    self.report(
                        "read-past-watermark",
                        f"{poll.client} was given {offset} below {poll.high_watermark}",
                    )
                expected = offset + 1
            position_of[poll.client] = expected

    def check_watermark(self) -> None:
        """Nobody who asks later is told of an earlier end; an acknowledged write lies before it."""
        told = [(read.ended, read.began, read.high_watermark) for read in self.polls]
        told += [(read.ended, read.began, read.offset) for read in self.latest]
        told += [(final.ended, final.began, final.end_offset) for final in self.finals]
        ends = [(ended, began, offset) for ended, began, offset in told]
        ends += [
            (send.ended, send.began, send.base_offset + len(send.values))
            for send in self.sends
            if send.outcome is Outcome.OK and send.acks_all
        ]
        ends.sort()
        waiting = iter([*ends, None])
        mark = next(waiting)
        known: list[tuple[int, int]] = []  # ends in force, ascending, and when the teller began
        for ended, began, offset in sorted(told, key=lambda row: row[1]):
            while mark is not None and mark[0] < began:
                self.forget_lost(known, mark[2], mark[0])
                if not known or mark[2] > known[-1][0]:
                    known.append((mark[2], mark[1]))
                mark = next(waiting)
            self.forget_lost(known, offset, ended)
            if known and known[-1][0] > offset:
                self.report("watermark-regressed", f"{offset} after {known[-1][0]}")

    def forget_lost(self, known: list[tuple[int, int]], end_offset: int, at: int) -> None:
        """Drop the ends above `end_offset` that a crash before `at` may have brought down to it."""
        while (
            known
            and known[-1][0] > end_offset
            and self.may_be_lost(end_offset, known[-1][1], at)
        ):  # fmt: skip
            known.pop()

    def check_final(self, final: FinalRead) -> None:
        expected = final.log_start_offset
        for offset, _ in final.records:
            if offset != expected:
                self.report("offset-gap", f"{offset} follows {expected - 1}")
            expected = offset + 1
        if expected != final.end_offset:
            self.report("offset-gap", f"the log ends at {final.end_offset}, read to {expected}")
        there = {value for _, value in final.records}
        furthest = max(
            (read.records[-1][0] for read in self.reads if read.records),
            default=-1,
        )
        for send, offset, value in self.acknowledged():
            if value in there:
                fate = "acknowledged_and_read"
            elif offset < final.log_start_offset:
                fate = "acknowledged_and_deleted"
            elif self.may_be_lost(offset, send.began, final.began):
                fate = "acknowledged_and_lost_as_allowed"
            else:
                fate = "lost-write" if offset <= furthest else "unseen"
                self.report(fate, f"{value!r} was acknowledged at {offset}")
            if final is self.finals[0]:
                self.verdict.count(fate)

    def check_start(self) -> None:
        for read in self.reads:
            asked = max(
                (trim.before_offset for trim in self.trims if trim.at < read.ended), default=0
            )
            if read.log_start_offset > asked:
                self.report(
                    "deleted-early", f"the log starts at {read.log_start_offset}, not {asked}"
                )
                return
