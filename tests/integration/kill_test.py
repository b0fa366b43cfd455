"""kill -9 under load: what was acknowledged is there, once, at the offset that was acknowledged.

One idempotent confluent-kafka producer lives through all kills and sends again what it does not
know the outcome of; the broker's producer state, rebuilt from the log, must drop what it has.
With durability `ack` the kill nearly always falls between an append and its acknowledgement.
`KILL_CYCLES` and `KILL_ACKNOWLEDGED` set how long it runs.
"""

import os
import random
import threading
import time

import pytest
from confluent_kafka import KafkaError, Message, Producer

from runnel.client.raw import WireClient
from tests.support.process import BrokerProcess, StartBroker
from tests.support.reading import Place, place_of, read_topic

CYCLES = int(os.environ.get("KILL_CYCLES", "3"))
ACKNOWLEDGED_PER_CYCLE = int(
    os.environ.get("KILL_ACKNOWLEDGED", "10000" if "KILL_CYCLES" in os.environ else "2000")
)
PARTITIONS = 4
TOPIC = "killed"
CYCLE_TIMEOUT_S = 60.0
SEED = 7


class Load:
    """Sends numbered records until it is told to stop, and notes what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[int, Place] = {}
        self.failed: dict[int, str] = {}
        self.sent_count = 0
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": 300_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "queue.buffering.max.messages": 10_000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name="load")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when every record that was sent is settled one way or the other."""
        self._stopping.set()
        self._thread.join()
        left = self._producer.flush(CYCLE_TIMEOUT_S)
        assert left == 0, f"{left} records are not settled"

    def _run(self) -> None:
        while not self._stopping.is_set():
            for _ in range(50):
                if len(self._producer) < 5_000:
                    self._send(self.sent_count)
            self._producer.poll(0.001)

    def _send(self, number: int) -> None:
        def settled(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed[number] = str(error)
            else:
                self.acknowledged[number] = place_of(message)

        self._producer.produce(
            TOPIC, value=b"%d" % number, partition=number % PARTITIONS, on_delivery=settled
        )
        self.sent_count += 1


def kill_and_restart(broker: BrokerProcess, load: Load, chance: random.Random) -> None:
    before = len(load.acknowledged)
    deadline = time.monotonic() + CYCLE_TIMEOUT_S
    while len(load.acknowledged) - before < ACKNOWLEDGED_PER_CYCLE:
        assert time.monotonic() < deadline, f"{len(load.acknowledged) - before} acknowledged"
        assert broker.is_running, broker.log[-3000:]
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.02))
    broker.kill()
    broker.start()


@pytest.mark.timeout(60 + 30 * CYCLES)
@pytest.mark.parametrize("durability", ["interval", "ack"])
def test_nothing_acknowledged_is_lost_or_doubled(
    start_broker: StartBroker, durability: str
) -> None:
    """Goal: lost 0, duplicate 0. Method: kill -9 under load, restart on the same folder."""
    broker, chance = start_broker(settings={"runnel.durability": durability}), random.Random(SEED)
    with WireClient(broker.address) as client:
        client.create_topic(TOPIC, PARTITIONS)
    load = Load(broker.bootstrap)
    load.start()
    try:
        for _ in range(CYCLES):
            kill_and_restart(broker, load, chance)
    finally:
        load.stop()
    found = {
        place_of(message): int(message.value() or b"")
        for message in read_topic(broker.bootstrap, TOPIC, PARTITIONS)
    }
    places: dict[int, list[Place]] = {}
    for place, number in found.items():
        places.setdefault(number, []).append(place)
    lost = [number for number in load.acknowledged if number not in places]
    duplicate = [number for number, where in places.items() if len(where) > 1]
    moved = [
        (number, place, places[number])
        for number, place in load.acknowledged.items()
        if number in places and place not in places[number]
    ]
    print(
        f"{CYCLES} kill -9 cycles, durability {durability}:"
        f" acknowledged {len(load.acknowledged)}, read {len(found)},"
        f" lost {len(lost)}, duplicate {len(duplicate)}, failed {len(load.failed)},"
        f" sent {load.sent_count}"
    )
    assert not lost, f"seed {SEED}: {lost[:10]}"
    assert not duplicate, f"seed {SEED}: {[(n, places[n]) for n in duplicate[:10]]}"
    assert not moved, f"seed {SEED}: {moved[:10]}"
    assert not load.failed, list(load.failed.items())[:3]
    assert len(load.acknowledged) >= CYCLES * ACKNOWLEDGED_PER_CYCLE
    for index in range(PARTITIONS):
        numbers = [number for (at, _), number in sorted(found.items()) if at == index]
        assert numbers == sorted(numbers), f"seed {SEED}: partition {index} is reordered"
