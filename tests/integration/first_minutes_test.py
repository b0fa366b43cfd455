"""What goes wrong in somebody's first minutes, and what they are told."""

from tests.support.command import Runnel
from tests.support.process import StartBroker, serve_until_it_fails


def test_a_broker_that_tells_clients_an_address_nobody_can_reach(
    start_broker: StartBroker,
) -> None:
    """The complaint heard most often: the broker answers, and then nothing works."""
    told = {"advertised.listeners": "PLAINTEXT://shop.invalid:9092"}
    broker = start_broker(settings=told)
    runnel = Runnel(broker.bootstrap)
    assert "orders" in runnel("topic", "create", "orders").line  # the first one asked does it
    done = runnel.inside("produce", "orders", stdin="tea\n")
    assert done.status == 1 and done.err.count("\n") == 1
    assert f"broker 0 is not reached where {broker.bootstrap} says that it is" in done.err
    assert "shop.invalid:9092" in done.err and "advertised.listeners" in done.err


def test_a_second_start(start_broker: StartBroker) -> None:
    broker = start_broker()
    status, said = serve_until_it_fails(broker.data_dir.with_name("other"), port=broker.port)
    assert status == 2 and "another program listens there" in said and "--port" in said
    status, said = serve_until_it_fails(broker.data_dir)
    assert status == 2 and f"in use by process {broker.pid}" in said


def test_a_host_that_this_machine_does_not_have(start_broker: StartBroker) -> None:
    """With a free port too, which nobody else can have taken."""
    broker = start_broker()
    folder = broker.data_dir.with_name("other")
    status, said = serve_until_it_fails(folder, "--host", "203.0.113.1")
    assert status == 2 and "no such address; choose another with --host" in said
    assert not folder.exists()
