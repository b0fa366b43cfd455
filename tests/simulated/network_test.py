"""What the network may do to bytes, and what it may not."""

import asyncio
from random import Random

from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.connection import Connection, Handle, Reply
from runnel.broker.courtesy import Courtesy
from runnel.broker.warming import Warming
from runnel.metrics import Metrics
from tests.simulated import loop as simulated
from tests.simulated.loop import Process, SimLoop, SimWorkers
from tests.simulated.network import Faults, Network
from tests.support.stores import ManualClock

PERFECT = Faults(cut=0, slow=0)


class Echo:
    """Answers each frame with itself."""

    def __init__(self) -> None:
        self.buffers = ReceiveBuffers(1 << 20)
        metrics = Metrics()
        courtesy = Courtesy(ManualClock(), metrics)
        self.warming = Warming(SimWorkers(Random(0)), metrics, courtesy)
        self.frames: list[bytes] = []

    @property
    def handle(self) -> Handle:
        return self._answer

    def wake_few(self) -> None:
        """Nobody waits."""

    def _answer(self, connection: Connection, frame: memoryview) -> Reply:
        self.frames.append(bytes(frame))
        return [bytearray(len(frame).to_bytes(4, "big") + bytes(frame))]


def exchange(seed: int, faults: Faults, frames: list[bytes]) -> tuple[list[bytes], bytes, Network]:
    """What one broker saw of these frames, what came back, and the network between."""

    async def main(loop: SimLoop) -> tuple[list[bytes], bytes, Network]:
        network = Network(loop, Random(seed), faults)
        echo, got = Echo(), bytearray()
        network.attach(Process(loop, "broker"), echo)
        link = await network.connect("client")
        link.receive = got.extend
        for frame in frames:
            link.send(len(frame).to_bytes(4, "big") + frame)
        await asyncio.sleep(60)
        return echo.frames, bytes(got), network

    return simulated.run(main)


FRAMES = [bytes([number]) * (8 + 37 * number) for number in range(20)]
STREAM = b"".join(len(frame).to_bytes(4, "big") + frame for frame in FRAMES)


def test_a_perfect_network_keeps_every_byte_in_order() -> None:
    for seed in range(20):
        seen, back, _ = exchange(seed, PERFECT, FRAMES)
        assert seen == FRAMES
        assert back == STREAM


def test_a_slow_reader_gets_everything_in_the_end() -> None:
    _, back, network = exchange(1, Faults(cut=0, slow=1), FRAMES)
    assert network.counts.slow_readers == 1
    assert back == STREAM


def test_a_cut_leaves_a_prefix_and_either_end_may_be_short() -> None:
    request_lost = reply_lost = half_frames = 0
    for seed in range(200):
        seen, back, network = exchange(seed, Faults(cut=1, slow=0), FRAMES)
        assert seen == FRAMES[: len(seen)]
        assert STREAM.startswith(back)
        request_lost += len(seen) < len(FRAMES)
        reply_lost += len(seen) == len(FRAMES) and len(back) < len(STREAM)
        half_frames += network.counts.half_frames
    assert request_lost > 20
    assert reply_lost > 20
    assert half_frames > 20


def test_the_same_seed_gives_the_same_network() -> None:
    first, second = (exchange(7, Faults(cut=1), FRAMES) for _ in range(2))
    assert first[:2] == second[:2]
    assert first[2].counts == second[2].counts
