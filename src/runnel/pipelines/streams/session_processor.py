"""Sessions as a stateful operator of Spark: a list of open ones for each key, and a timer for each.

A timer of event time fires when the watermark has passed the end of a session and the gap after it;
no event that is on time can join it then, so it is told once and is final. An event that is late is
not dropped: it joins a session that is open, or is one of its own, so that all events are counted.
"""

from collections.abc import Iterator
from typing import Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from runnel.pipelines.streams.session_intervals import Session, divided, merged

OUTPUT: Final = "key STRING, start_ms BIGINT, end_ms BIGINT, events BIGINT"
_STATE: Final = "start_ms BIGINT, end_ms BIGINT, events BIGINT"


class SessionProcessor(StatefulProcessor):
    """Takes rows with `at_ms`, gives rows of `key, start_ms, end_ms, events`."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._open = handle.getListState("sessions", _STATE)

    def handleInputRows(
        self, key: tuple[str], rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        came = [Session(row.at_ms, row.at_ms, 1) for row in rows]
        yield from self._settle(key, came, timerValues)

    def handleExpiredTimer(
        self, key: tuple[str], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        yield from self._settle(key, [], timerValues)

    def close(self) -> None:
        pass

    def _settle(self, key: tuple[str], came: list[Session], timers: TimerValues) -> Iterator[Row]:
        before = [Session(*kept) for kept in self._open.get()]
        sessions = merged([*before, *came], self._gap_ms)
        over, open_ = divided(sessions, self._gap_ms, timers.getCurrentWatermarkInMs())
        if open_:
            self._open.put([tuple(session) for session in open_])
        else:
            self._open.clear()
        due = {session.end_ms + self._gap_ms + 1 for session in open_}
        for past in set(self._handle.listTimers()) - due:
            self._handle.deleteTimer(past)
        for wanted in due:
            self._handle.registerTimer(wanted)
        for session in over:
            yield Row(
                key=key[0],
                start_ms=session.start_ms,
                end_ms=session.end_ms,
                events=session.events,
            )
