"""One client connection without its socket: cuts frames, keeps replies in order, knows its limits.

Sans-IO: a transport asks `receive_into` where to put bytes, says how many came with `received`,
and gets replies through `Outlet.send`. Rules:

  - Replies leave in request order. A request whose reply is not due mutes the connection, except
    that produce requests may follow produce requests, and commits commits, at most
    `in_flight_max` of them, because that decides the throughput of acks=all, and of commits that
    are gathered.
  - A frame is a view into the receive buffer and dies when its handler returns. Buffers are
    compacted or exchanged only between requests.
  - Muting is a set of reasons; bytes are read again when the last reason is gone.
  - Frames of one peer are handled for `TURN_S` at a time: then their replies leave, and the loop
    looks after everybody else first. A single frame takes as long as it takes.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Final, Protocol

from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.complaints import Complaint, of_size
from runnel.types import FileSlice

Part = bytearray | bytes | memoryview | FileSlice

PRODUCE_KEY: Final = 0
NO_KEY: Final = -1
SMALLEST_FRAME_BYTES: Final = 8  # api key, version, correlation id
LARGE_REST_BYTES: Final = 16 * 1024
UNSENT_BYTES_MAX: Final = 1024 * 1024  # beyond it no further request of this peer is handled
TURN_S: Final = 0.002
_unpack_size: Final = Struct(">i").unpack_from
_KEY: Final = Struct(">h")


class Mute:
    """Why no request of a connection is handled. Plain bits: an enum's operators are slow.

    Order is the one reason that is not a bit: it is `_outstanding` itself.
    """

    THROTTLE: Final = 1
    MEMORY: Final = 2
    AUTHENTICATION: Final = 4
    UNSENT: Final = 16  # the peer does not read its replies
    CLOSED: Final = 32
    TURN: Final = 64  # it had its turn, the next is asked for
    STOPPING: Final = 128  # the broker takes no more requests


class Outlet(Protocol):
    """What a connection needs of its transport."""

    def send(self, parts: list[Part]) -> int:
        """Queue or send parts in order; returns the bytes that wait unsent."""

    def monotonic(self) -> float:
        """Seconds, going on while a handler works."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """In a later turn of the loop."""

    def resume_reading(self) -> None: ...
    def close(self, reason: str) -> None: ...


class _Gone:
    """The outlet of every connection that is closed: its transport knows the connection, and would
    stay with it until somebody looks for cycles, which is next to never.
    """

    def send(self, parts: list[Part]) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    def call_soon(self, callback: Callable[[], None]) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self, reason: str) -> None: ...


_GONE: Final = _Gone()


class Pending:
    """A reply that is not due yet. Whoever made it calls `settle` exactly once."""

    __slots__ = ("cancel", "connection", "followed_by", "parts", "settled")

    def __init__(self, connection: "Connection", followed_by: int = NO_KEY) -> None:
        self.connection = connection
        self.followed_by = followed_by  # requests of this API are handled although it is not due
        self.settled = False
        self.parts: list[Part] | None = None
        self.cancel: Callable[[], None] | None = None  # called if the connection goes first

    def settle(self, parts: list[Part] | None) -> None:
        self.due(parts)
        self.connection.reply_due()

    def due(self, parts: list[Part] | None) -> None:
        """For several at once: whoever calls tells the connection afterwards."""
        assert not self.settled
        self.parts = parts
        self.settled = True
        self.cancel = None

    def abandon(self, reason: str) -> None:
        """The request failed in a way that its connection does not survive."""
        cancel, self.cancel = self.cancel, None
        if cancel is not None:
            cancel()  # else it stays where it waits, and fails again whenever that moves
        self.connection.close(reason)


Reply = list[Part] | Pending | None
Handle = Callable[["Connection", memoryview], Reply]


class Connection:
    """Owned by its transport, lives on the loop's thread."""

    __slots__ = (
        "_before_replies",
        "_blocked",
        "_buffers",
        "_end",
        "_handle",
        "_held",
        "_in_flight_max",
        "_is_last_frame",
        "_outlet",
        "_outstanding",
        "_replies",
        "_start",
        "active_tick",
        "client_id",
        "complaint",
        "finished_frame",
        "frame_bytes_at_tick",
        "frame_bytes_max",
        "frame_tick",
        "host",
        "listener",
        "mute",
        "principal",
        "throttled_until_ms",
    )

    def __init__(
        self,
        handle: Handle,
        outlet: Outlet,
        buffers: ReceiveBuffers,
        *,
        listener: str,
        host: str,
        frame_bytes_max: int,
        in_flight_max: int = 5,
        before_replies: Callable[[], None] = lambda: None,
    ) -> None:
        self._handle = handle
        self._before_replies = before_replies  # what they tell of may be somebody else's news, too
        self._outlet: Outlet = outlet
        self._buffers = buffers
        self._in_flight_max = in_flight_max
        self._held: memoryview | None = None
        self._start = 0
        self._end = 0
        self._outstanding: deque[Pending] = deque()
        self._replies: list[Part] = []
        self.mute = 0
        self._blocked = False
        self._is_last_frame = False  # of those that came together: the one under way, or before
        self.listener = listener
        self.host = host
        self.principal = "User:ANONYMOUS"
        self.client_id = ""  # of the latest request that gave one
        self.complaint: Complaint | None = None  # what is wrong with what the peer sent
        self.frame_bytes_max = frame_bytes_max
        self.active_tick = 0
        self.finished_frame = False  # since the last sweep
        self.frame_tick = 0  # the sweep from which on the peer has to get on with its frame
        self.frame_bytes_at_tick = 0  # what had come of it by then
        self.throttled_until_ms = 0  # by the monotonic clock, if muted for that reason

    @property
    def is_mid_frame(self) -> bool:
        """The peer owes us the rest of a frame."""
        return self._held is not None and not self._blocked

    @property
    def is_waiting(self) -> bool:
        """We owe the peer a reply."""
        return bool(self._outstanding)

    @property
    def wants_bytes(self) -> bool:
        """False while muted, or while held bytes already contain a frame that must wait."""
        return not self.mute and not self._blocked

    def receive_into(self) -> memoryview:
        """Where the transport puts the next bytes. Only to be asked while `wants_bytes`."""
        held = self._held
        if held is None:
            return self._buffers.shared
        end = self._end
        if end - self._start >= 4:
            frame_end = self._start + 4 + _unpack_size(held, self._start)[0]
            if end + LARGE_REST_BYTES < frame_end <= len(held):
                return held[end:frame_end]  # nothing of the next frame, or it would be copied
        return held[end:]

    def received(self, count: int) -> None:
        """Take `count` bytes that were put there. A frame no client sends closes the connection."""
        if self._held is None:
            shared = self._buffers.shared
            start = self._cut_frames(shared, 0, count)
            if start < count and not self.mute & Mute.CLOSED:
                self._hold(shared[start:count])
        else:
            self._end += count
            self._handle_held()
        if self._replies:
            self._flush_replies()

    def _cut_frames(self, view: memoryview, start: int, end: int) -> int:
        """Handle every whole frame that may be handled now; returns where the rest begins."""
        self._blocked = False
        begun = start
        turn_ends_s = 0.0
        while end - start >= 4:
            (size,) = _unpack_size(view, start)
            if size < SMALLEST_FRAME_BYTES or size > self.frame_bytes_max:
                self.complaint = of_size(bytes(view[start : start + 4]))
                self.close(f"frame of {size} bytes, allowed are 8 to {self.frame_bytes_max}")
                break
            frame_end = start + 4 + size
            if frame_end > end:
                break
            if (self._outstanding or self.mute) and not self._may_handle(view, start + 4):
                self._blocked = True
                break
            self._is_last_frame = frame_end == end
            reply = self._handle(self, view[start + 4 : frame_end])
            start = frame_end
            if type(reply) is list and not self._outstanding:
                self._replies += reply
            elif reply is not None:
                self._keep_in_order(reply)
            if start == end:
                break
            now_s = self._outlet.monotonic()  # asked only if a turn has a second frame
            turn_ends_s = turn_ends_s or now_s + TURN_S
            if now_s > turn_ends_s:
                self.mute |= Mute.TURN
                self._outlet.call_soon(self._next_turn)
        if start > begun:
            self.finished_frame = True
        return start

    @property
    def may_wake(self) -> bool:
        """Whether others may hear of what the frame under way does before its reply is made.

        Not if more of ours come, which may be more of the same, and not if we wait for something
        ourselves: while frames are cut nobody may make us go on.
        """
        return self._is_last_frame and not self._outstanding

    def _next_turn(self) -> None:
        if not self.mute & Mute.CLOSED:
            self.unmute(Mute.TURN)

    def _may_handle(self, view: memoryview, position: int) -> bool:
        if self.mute:
            return False
        (key,) = _KEY.unpack_from(view, position)
        return (
            key == self._outstanding[-1].followed_by
            and len(self._outstanding) < self._in_flight_max
        )

    def _keep_in_order(self, reply: list[Part] | Pending) -> None:
        """A reply that is not due, or one that is due behind another that is not."""
        if isinstance(reply, list):
            parts, reply = reply, Pending(self, self._outstanding[-1].followed_by)
            reply.parts, reply.settled = parts, True
        self._outstanding.append(reply)

    def _hold(self, rest: memoryview) -> None:
        """Move unhandled bytes out of the shared buffer into one of our own."""
        held = None
        if not self._blocked:
            held = self._buffers.take(self._wanted_capacity(rest), self)
            if held is None:
                self.mute |= Mute.MEMORY
        self._move(rest, held or self._buffers.keep(len(rest)))

    def _move(self, rest: memoryview, held: memoryview) -> None:
        held[: len(rest)] = rest
        self._held = held
        self._start, self._end = 0, len(rest)

    def _wanted_capacity(self, have: memoryview) -> int:
        """Room for the frame that has begun, but no more than four times what already came."""
        declared = 4 + _unpack_size(have)[0] if len(have) >= 4 else 4
        return max(min(declared, 4 * len(have)), len(have) + 1)

    def _handle_held(self) -> None:
        """Handle what can be handled of the held bytes, and leave room for more to come."""
        held = self._held
        assert held is not None
        begun = self._start
        self._start = self._cut_frames(held, begun, self._end)
        if self._start == self._end or self.mute & Mute.CLOSED:
            self._release()
            return
        if self._start > begun and self._buffers.pressed:
            held = self._move_to_fitting(held)
        if not self._blocked:
            self._make_room(held)

    def _move_to_fitting(self, held: memoryview) -> memoryview:
        """Nothing is left for others: the frame that needed this buffer is done, so let it go."""
        rest = held[self._start : self._end]
        self._buffers.finished(self)
        if 4 * len(rest) <= len(held):
            self._move(rest, self._buffers.keep(len(rest)))
            self._buffers.give_back(held)
        assert self._held is not None
        return self._held

    def _make_room(self, held: memoryview) -> None:
        rest = held[self._start : self._end]
        wanted = self._wanted_capacity(rest)
        if self._end < len(held) and self._start + wanted <= len(held):
            return
        if wanted > len(held):
            larger = self._buffers.take(wanted, self, len(held))
            if larger is not None:
                self._move(rest, larger)
                self._buffers.give_back(held)
                return
            if len(rest) == len(held):
                self.mute |= Mute.MEMORY
                return
        held[: len(rest)] = bytes(rest)
        self._start, self._end = 0, len(rest)

    @property
    def frame_bytes(self) -> int:
        """What came of the frame under way."""
        return self._end - self._start

    def swept(self, tick: int) -> None:
        """What comes of a frame from now on counts as its peer's getting on."""
        self.finished_frame = False
        self.frame_tick = tick
        self.frame_bytes_at_tick = self.frame_bytes

    @property
    def missing_bytes(self) -> int:
        if self._held is None or self.frame_bytes < 4:
            return 0
        return 4 + int(_unpack_size(self._held, self._start)[0]) - self.frame_bytes

    def memory_left(self) -> None:
        self._outlet.call_soon(self._ask_again)

    def _ask_again(self) -> None:
        if self.mute & ~Mute.MEMORY:  # it asks by itself when it goes on
            self.mute &= ~Mute.MEMORY
            self._buffers.finished(self)
        else:
            self.unmute(Mute.MEMORY)

    def _release(self) -> None:
        if self._held is not None:
            self._buffers.give_back(self._held)
            self._held = None
            self._start = self._end = 0
            if self._buffers.pressed:
                self._buffers.finished(self)

    def reply_due(self) -> None:
        """A pending reply was settled: send what is now in order, then go on with held frames."""
        if self.mute & Mute.CLOSED:
            return
        outstanding = self._outstanding
        while outstanding and outstanding[0].settled:
            self._replies += outstanding.popleft().parts or []
        self.go_on()

    def go_on(self) -> None:
        """Send what is due, handle held frames if nothing keeps us from it, and read again."""
        if self._replies:
            self._flush_replies()
        if self._held is not None and not self.mute:
            self._handle_held()
            if self._replies:
                self._flush_replies()
        if self.wants_bytes:
            self._outlet.resume_reading()

    def _flush_replies(self) -> None:
        """Never while frames are cut: who is woken may be this peer, which then goes on itself."""
        self._before_replies()
        if self._replies:
            self._send_replies()

    def _send_replies(self) -> None:
        replies = self._replies
        self._replies = []
        if self._outlet.send(replies) > UNSENT_BYTES_MAX:
            self.mute |= Mute.UNSENT

    def monotonic(self) -> float:
        return self._outlet.monotonic()

    def sent(self, unsent_bytes: int) -> None:
        """The transport got rid of queued bytes."""
        if self.mute & Mute.UNSENT and unsent_bytes <= UNSENT_BYTES_MAX:
            self.unmute(Mute.UNSENT)

    def unmute(self, reason: int) -> None:
        self.mute &= ~reason
        self.go_on()

    def take_no_more(self) -> None:
        """The broker stops: what is under way is answered, nothing new is begun."""
        self.mute |= Mute.STOPPING

    def close(self, reason: str) -> None:
        """End it for a stated reason; what earlier requests are due is still sent."""
        if not self.mute & Mute.CLOSED:
            if self._replies:
                self._send_replies()
            self._outlet.close(reason)

    def closed(self) -> None:
        """The socket is gone: nothing may be sent, nobody may wait for us."""
        self.mute |= Mute.CLOSED
        for pending in self._outstanding:
            cancel, pending.cancel = pending.cancel, None  # it knows who waits, and that one us
            if cancel is not None:
                cancel()
        self._outstanding.clear()
        self._replies.clear()
        self._release()
        self._outlet = _GONE
