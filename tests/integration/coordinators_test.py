"""Short runs of the long suites about coordinators: `make faults` has the long ones."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.integration.churn import SETTINGS as CHURN_SETTINGS
from tests.integration.churn import run_on
from tests.integration.exactly_once import SETTINGS as COPY_SETTINGS
from tests.integration.exactly_once import run
from tests.support.process import StartBroker


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_under_churn(start_broker: StartBroker, protocol: str) -> None:
    broker = start_broker(settings=CHURN_SETTINGS)
    verdict, counts = asyncio.run(
        run_on(broker, protocol, members=8, seconds=9, seed=3, kill_every_s=5)
    )
    assert not verdict.anomalies, verdict.anomalies[:5]
    assert verdict.counts["grants"] >= 8
    assert verdict.counts.get("commits_ok", 0) > 0, counts


def test_an_exactly_once_copy(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(settings=COPY_SETTINGS)
    wrong, counts = run(
        broker, tmp_path / "copiers.log", messages=6000, kills=2, protocol="classic",
        per_transaction=300, chance=random.Random(5),
    )  # fmt: skip
    assert not wrong, wrong
    assert counts["zombies"] == 1
    assert counts["brokers killed"] == 1
    assert counts["copiers killed"] == 1
