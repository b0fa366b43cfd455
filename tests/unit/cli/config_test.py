"""A setting to take away that this version does not know, but the cluster has."""

from typing import cast

import pytest

from runnel.cli.config import ensure_known
from runnel.cli.output import CommandError
from runnel.client import admin
from runnel.client.admin import ResourceType
from runnel.client.cluster import Cluster
from runnel.wire.messages.describe_configs import DescribeConfigsResourceResult


class FakeCluster:
    def node_ids(self) -> list[int]:
        return [3, 4]


@pytest.mark.parametrize(
    ("kind", "name", "asked"),
    [
        (ResourceType.TOPIC, "orders", "orders"),
        (ResourceType.BROKER, "4", "4"),
        (ResourceType.BROKER, "", "3"),  # what all brokers have, one of them tells
    ],
)
def test_what_a_newer_version_stored_can_be_taken_away(
    kind: ResourceType, name: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe_configs(
        _cluster: object, _kind: object, name: str, _names: object
    ) -> list[DescribeConfigsResourceResult]:
        assert name == asked
        return [DescribeConfigsResourceResult(name="newer.name")]

    monkeypatch.setattr(admin, "describe_configs", describe_configs)
    cluster = cast(Cluster, FakeCluster())
    ensure_known(cluster, kind, name, {"newer.name": None, "set.by.us": "1"})
    with pytest.raises(CommandError, match=r"no setting another\.name here"):
        ensure_known(cluster, kind, name, {"newer.name": None, "another.name": None})
