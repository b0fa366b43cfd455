"""A broker for tests of the Spark source: Runnel, or Apache Kafka to prove the tests themselves.

`RUNNEL_SPARK_TESTS_ON=kafka` chooses; `make compat` runs them so (tests/compat/spark/source_suite).
"""

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from runnel.testing import RunnelBroker
from tests.support.kafka_tools import KafkaBroker

CHOICE = "RUNNEL_SPARK_TESTS_ON"


class KafkaTwin:
    """As much of `RunnelBroker` as these tests use."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="runnel-kafka-"))
        self._broker = KafkaBroker(self._folder / "data")

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap

    def start(self) -> Self:
        self._broker.start()
        return self

    def kill(self) -> None:
        self._broker.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._broker.stop()
        shutil.rmtree(self._folder)


Broker = RunnelBroker | KafkaTwin


def spark_broker() -> Broker:
    return KafkaTwin() if os.environ.get(CHOICE) == "kafka" else RunnelBroker()
