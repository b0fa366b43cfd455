"""How long a test waits for its broker: from asking for it to the first answer to a client."""

import os
import statistics
import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient

from runnel.testing import RunnelBroker

ROUNDS = 10
FIRST_ANSWER_S_MAX = float(os.environ.get("FIRST_ANSWER_S_MAX", "0.3"))


@pytest.mark.parametrize("in_process", [False, True], ids=["process", "in-process"])
def test_the_first_answer_comes_soon(
    start_runnel_broker: Callable[..., RunnelBroker],
    capsys: pytest.CaptureFixture[str],
    in_process: bool,
) -> None:
    took_s: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        broker = start_runnel_broker(in_process=in_process)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        assert admin.list_topics(timeout=10).brokers
        took_s.append(time.perf_counter() - began)
        broker.close()
    median_s = statistics.median(took_s)
    with capsys.disabled():
        kind = "in this process" if in_process else "as a process"
        print(f"\n{kind}: first answer after {median_s * 1000:.0f} ms, median of {ROUNDS}")
        print("  each: " + ", ".join(f"{took * 1000:.0f}" for took in took_s))
    assert median_s < FIRST_ANSWER_S_MAX
