"""What the examples share: the address of a broker, and topics that begin empty.

    with a_broker() as servers: ...

`servers` is what every Kafka client takes as its bootstrap servers. If a broker answers at
RUNNEL_BOOTSTRAP_SERVER (or, without it, at localhost:9092) it is that one; otherwise the example
gets a broker of its own, which ends with it and leaves nothing behind.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from runnel.client import admin
from runnel.client.cluster import ClientError, Cluster, RefusedError, addresses_of
from runnel.client.groups import delete_group, list_groups
from runnel.testing import RunnelBroker

GROUPS = "examples."  # how the names of all their groups begin


@contextmanager
def a_broker() -> Iterator[str]:
    wanted = os.environ.get("RUNNEL_BOOTSTRAP_SERVER", "localhost:9092")
    if _answers(wanted):
        say(f"using the broker at {wanted}")
        yield wanted
        return
    with RunnelBroker() as broker:
        say(f"no broker answers at {wanted}: this example has one of its own while it runs")
        yield broker.bootstrap_servers


def new_topic(
    servers: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> str:
    """A topic without records, whatever an earlier run left in it or committed; returns its name.

    In a shell: runnel topic create NAME --partitions 3 --config retention.ms=60000
    """
    with Cluster(addresses_of(servers)) as cluster:
        with suppress(RefusedError):  # there was none
            admin.delete_topic(cluster, name)
        for group in list_groups(cluster, states=["Empty"]):
            if group.group.startswith(GROUPS):
                with suppress(RefusedError):  # somebody has joined it meanwhile
                    delete_group(cluster, group.group)
        admin.create_topic(cluster, name, partitions, configs=config)
    return name


def say(text: str) -> None:
    """A remark beside the output of the example."""
    sys.stderr.write(f"({text})\n")


def _answers(servers: str) -> bool:
    with suppress(ClientError), Cluster(addresses_of(servers), timeout_s=2) as cluster:
        cluster.metadata([])
        return True
    return False
