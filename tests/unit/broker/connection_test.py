"""Goal: frames are cut wherever they are split, replies keep the order of requests, limits hold.

Method: a Connection without a socket; a handler that echoes, parks or closes as the frame says.
"""

import random
from collections.abc import Callable
from struct import pack

import pytest

from runnel.broker.buffers import (
    LENT_WHEN_EXHAUSTED_BYTES,
    SHARED_BYTES,
    SMALLEST_HELD_BYTES,
    ReceiveBuffers,
)
from runnel.broker.connection import NO_KEY, Connection, Mute, Part, Pending, Reply

PRODUCE, FETCH = 0, 1
IN_FLIGHT_MAX = 5


class Wire:
    """Outlet and handler at once. A frame's body says what the handler does with it."""

    def __init__(self, buffers: ReceiveBuffers | None = None) -> None:
        self.sent: list[bytes] = []
        self.pending: list[Pending] = []
        self.handled: list[bytes] = []
        self.closed_for = ""
        self.resumed = 0
        self.unsent_bytes = 0
        self.now_s = 1.0
        self.soon: list[Callable[[], None]] = []
        self.buffers = buffers or ReceiveBuffers(1 << 30)
        self.left = b""
        self.before_replies: Callable[[], None] = lambda: None
        self.connection = Connection(
            self.handle,
            self,
            self.buffers,
            listener="L",
            host="h",
            frame_bytes_max=1 << 20,
            before_replies=lambda: self.before_replies(),
        )

    def settle_next(self) -> None:
        """As if what had moved were what the oldest parked request waits for."""
        pending = next((each for each in self.pending if not each.settled), None)
        if pending is not None:
            pending.settle([b"woken"])

    def handle(self, connection: Connection, frame: memoryview) -> Reply:
        body = bytes(frame[8:])
        self.handled.append(body)
        if body.startswith(b"park"):
            pending = Pending(connection, PRODUCE if frame[1] == PRODUCE else NO_KEY)
            self.pending.append(pending)
            return pending
        if body == b"close":
            connection.close("asked to")
            return None
        if body.startswith(b"slow"):
            self.now_s += 0.001
        return None if body == b"silent" else [bytearray(body)]

    def send(self, parts: list[Part]) -> int:
        self.sent += [bytes(part) for part in parts]  # type: ignore[arg-type]  # no slices here
        return self.unsent_bytes

    def monotonic(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def run_soon(self) -> None:
        """One turn of the loop."""
        callbacks, self.soon = self.soon, []
        for callback in callbacks:
            callback()

    def resume_reading(self) -> None:
        self.resumed += 1

    def close(self, reason: str) -> None:
        self.closed_for = reason
        self.connection.closed()

    def feed(self, data: bytes) -> None:
        """Give bytes as a socket would: as much as there is room for, while they are wanted."""
        while data and self.connection.wants_bytes:
            target = self.connection.receive_into()
            count = min(len(target), len(data))
            assert count > 0
            target[:count] = data[:count]
            data = data[count:]
            self.connection.received(count)
        self.left = data


def frame(body: bytes, key: int = FETCH) -> bytes:
    return pack(">ihhi", 8 + len(body), key, 0, 0) + body


def test_every_split_of_three_frames_gives_the_same_replies() -> None:
    data = frame(b"one") + frame(b"") + frame(b"three" * 10)
    for cut in range(len(data) + 1):
        wire = Wire()
        wire.feed(data[:cut])
        wire.feed(data[cut:])
        assert b"".join(wire.sent) == b"one" + b"three" * 10
        assert wire.buffers.held_bytes == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_chunks_of_large_and_small_frames(seed: int) -> None:
    chance = random.Random(seed)
    bodies = [chance.randbytes(chance.choice([1, 50, 70_000, 600_000])) for _ in range(12)]
    data = b"".join(map(frame, bodies))
    wire = Wire()
    while data:
        size = chance.choice([1, 3, 1000, 65_536, 700_000])
        wire.feed(data[:size])
        data = data[size:]
    assert wire.handled == bodies
    assert wire.buffers.held_bytes == 0


def test_a_parked_request_holds_back_all_that_follows() -> None:
    wire = Wire()
    wire.feed(frame(b"park") + frame(b"after"))
    assert wire.handled == [b"park"]
    assert not wire.connection.wants_bytes
    wire.pending[0].settle([b"first"])
    assert wire.sent == [b"first", b"after"]
    assert wire.connection.wants_bytes
    assert wire.resumed


def test_produces_follow_a_parked_produce_but_nothing_overtakes() -> None:
    wire = Wire()
    wire.feed(frame(b"park1", PRODUCE) + frame(b"two", PRODUCE) + frame(b"three", FETCH))
    assert wire.handled == [b"park1", b"two"]
    assert wire.sent == []
    wire.pending[0].settle([b"one"])
    assert wire.sent == [b"one", b"two", b"three"]


def test_who_is_woken_before_replies_leave_may_be_the_same_peer() -> None:
    wire = Wire()
    parked = [frame(b"park1", PRODUCE), frame(b"park2", PRODUCE), frame(b"after", FETCH)]
    wire.feed(b"".join(parked))
    wire.before_replies = wire.settle_next
    wire.pending[0].settle([b"first"])
    assert wire.sent == [b"first", b"woken", b"after"]
    assert wire.handled == [b"park1", b"park2", b"after"]
    assert wire.buffers.held_bytes == 0


def test_an_end_in_the_middle_of_frames_wakes_nobody() -> None:
    """It might be this peer itself, which would begin with the same frames again."""
    wire = Wire()
    wire.before_replies = wire.settle_next
    data = b"".join(frame(body, PRODUCE) for body in (b"one", b"park", b"close", b"four"))
    wire.feed(data[:5])
    wire.feed(data[5:])
    assert wire.handled == [b"one", b"park", b"close"]
    assert wire.sent == [b"one"]
    assert wire.closed_for == "asked to"


def test_no_more_than_five_produces_are_outstanding() -> None:
    wire = Wire()
    wire.feed(b"".join(frame(b"park%d" % n, PRODUCE) for n in range(9)))
    assert len(wire.handled) == IN_FLIGHT_MAX
    wire.pending[1].settle([b"1"])
    assert wire.sent == []
    wire.pending[0].settle([b"0"])
    assert wire.sent == [b"0", b"1"]
    assert len(wire.handled) == IN_FLIGHT_MAX + 2


def test_no_reply_where_none_is_wanted() -> None:
    wire = Wire()
    wire.feed(frame(b"silent", PRODUCE) + frame(b"next"))
    assert wire.sent == [b"next"]


SLOW = [b"slow%d" % number for number in range(50)]


def test_slow_pipelined_requests_are_handled_in_turns() -> None:
    wire = Wire()
    wire.feed(b"".join(map(frame, SLOW)) + frame(b"half")[:9])
    turns = 1
    while wire.soon:
        assert not wire.connection.wants_bytes, "it reads on before it had its turn"
        assert wire.sent == wire.handled == SLOW[: len(wire.sent)], "replies wait for a later turn"
        before = len(wire.handled)
        wire.run_soon()
        turns += 1
        assert len(wire.handled) <= before + 5
    assert wire.sent == SLOW
    assert turns >= 10
    assert wire.connection.wants_bytes
    wire.feed(frame(b"half")[9:])
    assert wire.sent == [*SLOW, b"half"]
    assert wire.buffers.held_bytes == 0


def test_quick_pipelined_requests_are_one_turn() -> None:
    wire = Wire()
    wire.feed(b"".join(frame(b"%d" % number) for number in range(1000)))
    assert len(wire.sent) == 1000
    assert not wire.soon


def test_a_turn_that_comes_after_the_end_does_nothing() -> None:
    wire = Wire()
    wire.feed(b"".join(map(frame, SLOW)))
    wire.connection.close("gone")
    handled = len(wire.handled)
    wire.run_soon()
    assert len(wire.handled) == handled
    assert wire.buffers.held_bytes == 0


def test_a_reply_that_comes_due_does_not_bring_the_next_turn_forward() -> None:
    wire = Wire()
    wire.feed(frame(b"park", PRODUCE) + b"".join(frame(body, PRODUCE) for body in SLOW[:4]))
    wire.feed(frame(b"last", PRODUCE))
    assert wire.soon
    handled = len(wire.handled)
    wire.pending[0].settle([b"first"])
    assert len(wire.handled) == handled
    while wire.soon:
        wire.run_soon()
    wire.feed(wire.left)
    assert wire.sent == [b"first", *SLOW[:4], b"last"]


@pytest.mark.parametrize("size", [-1, 0, 7, (1 << 20) + 1, 2**31 - 1, -(2**31)])
def test_a_size_no_client_sends_closes_after_what_is_due(size: int) -> None:
    wire = Wire()
    wire.feed(frame(b"good") + pack(">i", size) + b"xxxx")
    assert wire.sent == [b"good"]
    assert "frame of" in wire.closed_for
    assert wire.buffers.held_bytes == 0


def test_a_declared_size_allocates_nothing() -> None:
    wire = Wire()
    wire.feed(pack(">i", 1 << 20))
    assert wire.buffers.held_bytes <= SMALLEST_HELD_BYTES


BUDGET_BYTES = 4 << 20
LARGE = frame(bytes(range(250)) * 4000)


def run_all(wires: list[Wire]) -> None:
    """Turns of the loop, and what peers have to send is read where it is wanted."""
    while any(wire.soon for wire in wires):
        for wire in wires:
            wire.run_soon()
            wire.feed(wire.left)


def test_peers_that_send_a_part_and_stop_hold_little_more_than_the_budget() -> None:
    buffers = ReceiveBuffers(BUDGET_BYTES)
    wires = [Wire(buffers) for _ in range(100)]
    for wire in wires:
        wire.feed(LARGE[:600_000])
    run_all(wires)
    one_frame_bytes = 1 << 20
    little_bytes = len(wires) * LENT_WHEN_EXHAUSTED_BYTES + SHARED_BYTES
    assert buffers.held_bytes <= BUDGET_BYTES + one_frame_bytes + little_bytes
    assert sum(bool(wire.left) for wire in wires) > 90, "they wait in the peers' sockets"

    healthy = Wire(buffers)
    healthy.feed(frame(b"small"))
    assert healthy.sent == [b"small"], "who needs no memory is served"
    healthy.feed(frame(bytes(100_000)))
    for wire in wires[:2]:
        wire.connection.close("too slow")
    run_all([healthy])
    assert healthy.handled[1:] == [bytes(100_000)], "who misses least is first"

    for wire in wires[2:]:
        wire.connection.close("gone")
        run_all(wires)
    assert buffers.held_bytes == 0
    assert not buffers.pressed
    assert len(buffers.shared) == SHARED_BYTES


@pytest.mark.parametrize("seed", range(5))
def test_large_frames_that_do_not_fit_together_are_all_finished(seed: int) -> None:
    """Method: every peer sends all it has, in an order by chance; some leave on the way."""
    chance = random.Random(seed)
    buffers = ReceiveBuffers(BUDGET_BYTES // 4)
    wires = [Wire(buffers) for _ in range(24)]
    rest = {wire: LARGE + frame(b"then") + LARGE for wire in wires}
    leaves = set(chance.sample(wires, 4))
    while True:
        able = [wire for wire, data in rest.items() if wire.soon or wire.left or data]
        able = [wire for wire in able if wire.soon or wire.connection.wants_bytes]
        if not able:
            break
        wire = chance.choice(able)
        wire.run_soon()
        size = chance.randint(1, 300_000)
        data = wire.left + rest[wire]
        wire.feed(data[:size])
        rest[wire] = wire.left + data[size:]
        wire.left = b""
        if wire in leaves and chance.random() < 0.2:
            wire.connection.close("leaves")
            rest[wire] = b""
    for wire in wires:
        if wire not in leaves:
            assert wire.handled == [LARGE[12:], b"then", LARGE[12:]]
        wire.connection.close("gone")
    assert buffers.held_bytes == 0


def test_memory_given_back_lets_the_next_go_on_without_a_sweep() -> None:
    buffers = ReceiveBuffers(SMALLEST_HELD_BYTES)
    first, second = Wire(buffers), Wire(buffers)
    first.feed(LARGE[:70_000])
    second.feed(LARGE)
    assert second.connection.mute & Mute.MEMORY
    assert second.connection.is_mid_frame
    first.feed(LARGE[70_000:])
    run_all([second])
    assert first.handled == second.handled == [LARGE[12:]]


def test_a_finished_large_frame_does_not_leave_its_buffer_to_the_next() -> None:
    buffers = ReceiveBuffers(SMALLEST_HELD_BYTES)
    wire = Wire(buffers)
    wire.feed(LARGE[:995_000])  # the rest is read together with what follows
    assert buffers.held_bytes > 900_000
    wire.feed(LARGE[995_000:] + frame(b"x" * 100)[:50])
    wire.feed(wire.left)
    assert wire.handled == [LARGE[12:]]
    assert buffers.held_bytes <= 2 * SMALLEST_HELD_BYTES


def test_a_waiting_peer_that_cannot_go_on_lets_others_pass() -> None:
    buffers = ReceiveBuffers(SMALLEST_HELD_BYTES)
    first, stuck, third = (Wire(buffers) for _ in range(3))
    first.feed(LARGE[:70_000])
    stuck.unsent_bytes = 2 << 20
    stuck.feed(frame(b"reply") + LARGE[:50_000])
    assert stuck.connection.mute == Mute.MEMORY | Mute.UNSENT
    third.feed(LARGE)
    first.connection.close("gone")
    run_all([stuck, third])
    assert third.handled == [LARGE[12:]]
    stuck.connection.sent(0)
    stuck.unsent_bytes = 0
    stuck.feed(stuck.left + LARGE[50_000:])
    assert stuck.handled == [b"reply", LARGE[12:]]


def test_a_peer_that_does_not_read_is_not_served() -> None:
    wire = Wire()
    wire.unsent_bytes = 2 << 20
    wire.feed(frame(b"a") + frame(b"b"))
    assert wire.sent == [b"a", b"b"]
    wire.feed(frame(b"c"))
    assert wire.handled == [b"a", b"b"]
    wire.unsent_bytes = 0
    wire.connection.sent(0)
    wire.feed(wire.left)
    assert wire.handled == [b"a", b"b", b"c"]


def test_closing_cancels_what_waits() -> None:
    wire = Wire()
    cancelled = []
    wire.feed(frame(b"park"))
    wire.pending[0].cancel = lambda: cancelled.append(True)
    wire.connection.close("gone")
    assert cancelled == [True]
    wire.pending[0].settle([b"late"])
    assert wire.sent == []


def test_closing_inside_a_handler_handles_nothing_more() -> None:
    wire = Wire()
    wire.feed(frame(b"x") + frame(b"close") + frame(b"never"))
    assert wire.handled == [b"x", b"close"]
    assert wire.sent == [b"x"]
    assert wire.closed_for == "asked to"
