"""Sessions of one key: runs of events in which no pause is longer than a gap.

Events come in any order, and one of them may join two sessions that were apart.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Session(NamedTuple):
    start_ms: int
    end_ms: int  # of the last event
    events: int


def merged(sessions: Iterable[Session], gap_ms: int) -> list[Session]:
    """In the order of time; an event by itself is a session of one."""
    found: list[Session] = []
    for session in sorted(sessions):
        if found and session.start_ms - found[-1].end_ms <= gap_ms:
            last = found[-1]
            end_ms = max(last.end_ms, session.end_ms)
            found[-1] = Session(last.start_ms, end_ms, last.events + session.events)
        else:
            found.append(session)
    return found


def divided(
    sessions: Iterable[Session], gap_ms: int, now_ms: int
) -> tuple[list[Session], list[Session]]:
    """Those that no event after `now_ms` can join any more, and the others."""
    over: list[Session] = []
    open_: list[Session] = []
    for session in sessions:
        (over if session.end_ms + gap_ms < now_ms else open_).append(session)
    return over, open_
