"""`lag-history` as a user runs it: polls of groups in a table, and alerts."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

from runnel.client.group_lag import Lag
from runnel.pipelines.kinds.lag_history import SINCE
from runnel.pipelines.streams.lag_polls import Limits, Seen, place_of, rows, since_when
from tests.support.command import Runnel
from tests.support.process import StartBroker

PIPELINE = """\
kind: lag-history
options: {groups: "^shop", alert_lag: 5, alert_after: 1ms}
to: {table: lake/lags}
"""


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def polls(folder: Path) -> list[dict[str, object]]:
    table = DeltaTable(str(folder / "lake" / "lags")).to_pyarrow_table()
    found: list[dict[str, object]] = table.sort_by("polled_at").to_pylist()
    return found


@pytest.mark.timeout(120)
def test_each_run_adds_a_poll(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(settings={"group.initial.rebalance.delay.ms": "0"})
    runnel = Runnel(broker.bootstrap, tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "lags.yml").write_text(PIPELINE)
    runnel("topic", "create", "orders")
    runnel("produce", "orders", stdin="".join(f"{number}\n" for number in range(20)))
    commit(broker.bootstrap, "shop-a", "orders", 10)
    commit(broker.bootstrap, "shop-b", "orders", 18)
    commit(broker.bootstrap, "other", "orders", 0)

    for alerts in ("0 alerts", "1 alert"):
        done = runnel.process("pipeline", "run", "lags")
        assert done.status == 0, done
        assert f"2 groups, 2 partitions, {alerts}" in done.err + done.out
    found = polls(tmp_path)
    assert [
        (row["group_id"], row["committed_offset"], row["end_offset"], row["lag"]) for row in found
    ] == [
        ("shop-a", 10, 20, 10),
        ("shop-b", 18, 20, 2),
    ] * 2
    assert [row["alert"] for row in found] == [False, False, True, False]
    assert found[0]["over_since"] == found[2]["over_since"] == found[0]["polled_at"]

    commit(broker.bootstrap, "shop-a", "orders", 20)
    assert runnel.process("pipeline", "run", "lags").status == 0
    assert [row["alert"] for row in polls(tmp_path)][4:] == [False, False]
    kept = tmp_path / ".runnel" / "pipelines" / "lags" / "notes" / SINCE
    assert json.loads(kept.read_text()) == {}


def test_an_alert_needs_the_lag_to_stay() -> None:
    limits = Limits(alert_lag=5, alert_after_ms=60_000, rows_max=10)
    since: dict[str, int] = {}
    alerts = []
    for minute, lag in enumerate((6, 9, 3, 8, 7, 7)):
        seen = [Seen("g", "Empty", 0, Lag("t", 0, 100, 100 + lag, "", None))]
        now_ms = minute * 40_000
        since = since_when(seen, since, limits, now_ms)
        alerts += [row["alert"] for row in rows(seen, since, limits, now_ms)]
    assert alerts == [False, False, False, False, False, True]
    unknown = Seen("g", "Empty", 0, Lag("t", 1, None, 100, "", None))
    assert since_when([unknown], {place_of(unknown): 0}, limits, 1) == {}
