"""The broker that a test of commands talks to: Runnel, or another that is already running.

With `BOOTSTRAP_SERVERS` in the environment the same test runs against whoever listens there: Kafka
itself as the oracle. Names are new in each run, so that what was left there does not disturb.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.process import BrokerProcess

ELSEWHERE = "BOOTSTRAP_SERVERS"


@contextmanager
def some_broker(folder: Path) -> Iterator[str]:
    """Its address."""
    if address := os.environ.get(ELSEWHERE):
        yield address
        return
    with BrokerProcess(folder / "data") as broker:
        yield broker.bootstrap


def new_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"
