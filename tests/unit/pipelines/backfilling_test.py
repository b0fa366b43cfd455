"""What a backfill is going to read, planned without Spark."""

import json
from pathlib import Path

from confluent_kafka import Producer

from runnel.pipelines import backfilling
from runnel.pipelines.home import Home
from runnel.pipelines.spec import read
from runnel.testing import RunnelBroker

FILE = """\
from: {topic: orders}
decode: {format: json}
to: {table: lake/orders}
options: {evolve: true}
"""


def test_columns_that_are_told_from_values_are_no_obstacle(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for folder in ("offsets", "commits"):
        (home.checkpoint / folder).mkdir(parents=True)
        (home.checkpoint / folder / "0").write_text(f"v1\n{{}}\n{json.dumps({'orders': {'0': 2}})}")
    with RunnelBroker() as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for number in range(3):
            producer.produce("orders", json.dumps({"id": number}))
        assert producer.flush(30) == 0
        environ = {"RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap_servers}
        spec = read(FILE, tmp_path / "orders.yml", environ)
        plan = backfilling.planned(spec, home, "--from -7d", 0, None, 500)
    assert plan.chunks == [{"orders": {"0": [0, 2]}}]  # the stream has yet to read the third
