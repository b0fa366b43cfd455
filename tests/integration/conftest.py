"""Real broker processes for the tests of this folder; each test's brokers end with it."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import LOOPS, BrokerProcess, StartBroker

# A suite that was started in the background ignores interrupts; what it starts must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=sorted(LOOPS))
def loop_name(request: pytest.FixtureRequest) -> str:
    """The event loop that a broker of this test runs on."""
    name: str = request.param
    return name


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts a broker on a folder of this test. Arguments are those of `BrokerProcess`."""
    started: list[BrokerProcess] = []

    def start(name: str = "data", **options: object) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / name, **options)  # type: ignore[arg-type]  # passed on
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in started:
        if broker.is_running:
            broker.kill()
