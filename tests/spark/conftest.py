"""One Spark session and one broker for all tests of this folder; every test has topics of its own.

A JVM takes seconds to start and most of a gigabyte; each worker of pytest-xdist has one. What
kills, seeds or needs a cluster is no test of this folder but a command of the Makefile.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.spark import session
from tests.support.process import PACKAGES, ROOT, BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
PATIENCE_S = 30.0
STARTS_JAVA_S = 400  # the first test of a worker waits for it, on a machine that is busy

MakeTopic = Callable[..., str]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(STARTS_JAVA_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Workers import what this process does: the sources here, and the tests' own modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PACKAGES), str(ROOT)]))
        folder = tmp_path_factory.mktemp("spark")
        found = session(
            "tests",
            cores=2,
            memory="1g",
            conf={
                "spark.local.dir": str(folder / "local"),
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.sql.streaming.forceDeleteTempCheckpointLocation": True,
            },
        )
        yield found
        found.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Not for tests that stop or kill it: those start their own."""
    # Records of these tests are years old: nothing is to go while a stream reads them.
    settings = {"group.initial.rebalance.delay.ms": "0", "log.retention.ms": "-1"}
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data", settings=settings) as running:
        yield running


@pytest.fixture
def make_topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> MakeTopic:
    """`make_topic("orders", partitions=3, config={...})` gives the name of a new topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def make(
        prefix: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        name = f"{prefix}-{os.urandom(4).hex()}"
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        admin.create_topics([topic])[name].result(PATIENCE_S)
        return name

    return make


@pytest.fixture
def producer(broker: BrokerProcess) -> Producer:
    """Of librdkafka: what is read back was not written by our own code. Call `flush` after it."""
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0})
