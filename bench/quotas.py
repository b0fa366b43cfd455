"""Whether quotas hold: one client is limited, another is not and must not notice.

    python -m bench.quotas [--seconds 20] [--limit-mb 1] [--other-mb 20]

Four real clients (librdkafka) in processes of their own, first the other one alone, then both: a
producer each, then a consumer each. The other is paced by itself so that two cores suffice. Ends
with 1 unless the limited client gets 0.9 to 1.1 of its quota, counted from its first request, and
the other keeps 0.95 of its rate alone. Measured by the clients: bytes of values that were
acknowledged or delivered, in order.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from bench.quota_client import Done, Task
from runnel.client import admin, quotas
from runnel.client.cluster import Cluster, addresses_of
from tests.support.process import ROOT, BrokerProcess, environment

LIMITED, OTHER = "limited", "other"
TOPICS = (LIMITED, OTHER)
PARTITIONS = 4
SPARE = 1.6  # of what a consumer reads at its pace


class Verdict(NamedTuple):
    what: str
    limit_mb_s: float
    limited: Done
    alone: Done
    beside: Done

    @property
    def share(self) -> float:
        """Of its quota, what the limited client got."""
        return self.limited.mb_s / self.limit_mb_s

    @property
    def kept(self) -> float:
        """Of its rate alone, what the other kept."""
        return self.beside.mb_s / self.alone.mb_s

    def is_good(self, share: tuple[float, float] = (0.9, 1.1), kept: float = 0.95) -> bool:
        return share[0] <= self.share <= share[1] and self.kept >= kept

    def __str__(self) -> str:
        return (
            f"{self.what:8} limited to {self.limit_mb_s:g} MB/s: {self.limited.mb_s:.3f} MB/s"
            f" (longest throttle {self.limited.throttled_ms_max} ms);"
            f" other alone {self.alone.mb_s:.2f}, beside {self.beside.mb_s:.2f} MB/s:"
            f" {self.kept:.3f}x"
        )


def run_clients(tasks: Sequence[Task]) -> list[Done]:
    """Side by side, begun together."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.quota_client", json.dumps(asdict(task))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            text=True,
        )
        for task in tasks
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "a client did not come up"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = [
            process.communicate(timeout=task.seconds + 60)[0]
            for process, task in zip(processes, tasks, strict=True)
        ]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    return [Done(**json.loads(output)) for output in outputs]


def measure(
    bootstrap: str, *, seconds: float, limit_mb_s: float, other_mb_s: float
) -> list[Verdict]:
    with Cluster(addresses_of(bootstrap)) as cluster:
        for topic in TOPICS:
            admin.create_topic(cluster, topic, PARTITIONS, configs={"retention.ms": "-1"})
        rate = limit_mb_s * 1e6
        names = {"client-id": LIMITED}
        quotas.alter(cluster, names, {"producer_byte_rate": rate, "consumer_byte_rate": rate})

    def task(kind: str, name: str, span_s: float, pace: float, client_id: str = "") -> Task:
        return Task(kind, bootstrap, name, client_id or name, span_s, pace)

    verdicts: list[Verdict] = []
    for kind, what in (("produce", "producer"), ("consume", "consumer")):
        if kind == "consume":  # so that there is more than anybody reads in the time
            for name, pace in ((LIMITED, limit_mb_s), (OTHER, other_mb_s)):
                run_clients([task("produce", name, seconds * SPARE / 4, 4 * pace, "filler")])
        (alone,) = run_clients([task(kind, OTHER, seconds, other_mb_s)])
        limited, beside = run_clients(
            [task(kind, LIMITED, seconds, 0.0), task(kind, OTHER, seconds, other_mb_s)]
        )
        verdicts.append(Verdict(what, limit_mb_s, limited, alone, beside))
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether quotas hold, and cost nobody else.")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--limit-mb", type=float, default=1.0, help="MB/s (default: 1)")
    parser.add_argument("--other-mb", type=float, default=20.0, help="MB/s (default: 20)")
    parser.add_argument("--bootstrap-server", help="a broker that runs; else one is started")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="runnel-quotas-") as folder,
        BrokerProcess(Path(folder) / "data") as broker,
    ):
        verdicts = measure(
            given.bootstrap_server or broker.bootstrap,
            seconds=given.seconds,
            limit_mb_s=given.limit_mb,
            other_mb_s=given.other_mb,
        )
    for verdict in verdicts:
        print(verdict, "" if verdict.is_good() else " MISSED")
    return 0 if all(verdict.is_good() for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
