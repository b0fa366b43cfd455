"""What clients may use, as an operator asks for it and sets it."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from runnel.client.cluster import Cluster, RefusedError
from runnel.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from runnel.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

Names = Mapping[str, str | None]  # user, client-id or ip; None: the default


class Match(IntEnum):
    """How a filter compares, by the number on the wire."""

    EXACT = 0
    DEFAULT = 1


class Quota(NamedTuple):
    entity: Names
    values: Mapping[str, float]


def describe(cluster: Cluster, names: Names) -> list[Quota]:
    """Those of every entity with these names among its own."""
    components = [
        ComponentData(
            entity_type=kind,
            match_type=Match.DEFAULT if name is None else Match.EXACT,
            match=name,
        )
        for kind, name in names.items()
    ]
    response = cluster.call(DescribeClientQuotasRequest(components=components))
    if response.error_code:
        raise RefusedError(response.error_code, response.error_message, "quotas")
    found = [
        Quota(
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in sorted(entry.values, key=lambda row: str(row.key))},
        )
        for entry in response.entries or ()
    ]
    return sorted(found, key=lambda quota: sorted((k, v or "") for k, v in quota.entity.items()))


def alter(
    cluster: Cluster,
    names: Names,
    changes: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> None:
    """Of this very entity. A value of None is taken away."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in names.items()
        ],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)

    def attempt() -> None:
        (result,) = cluster.call(request).entries
        if result.error_code:
            raise RefusedError(result.error_code, result.error_message, "quotas")

    cluster.retried(attempt)
