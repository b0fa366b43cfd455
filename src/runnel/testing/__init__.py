"""A real broker for tests, on a free port and a temporary folder, ready in a fraction of a second.

    from runnel.testing import RunnelBroker

    with RunnelBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Under pytest the fixtures `runnel_broker`, `runnel_topic` and `start_runnel_broker` are there as
soon as Runnel is installed. Importing this package imports nothing else: every run of pytest in an
environment with Runnel does it, also those that need no broker.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.testing.broker import BrokerError, RunnelBroker

__all__ = ["BrokerError", "RunnelBroker"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runnel.testing import broker

    return getattr(broker, name)
