"""Kafka's features: which levels this software supports, which the cluster has finalized. Pure.

Clients choose protocols by finalized levels (transactions v2, the new groups), so a feature whose
promise is not kept yet is supported at level 0 alone. `metadata.version` is what tools take for
the release of the cluster; ours is that of Kafka 4.3. What was never set has its initial level.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from runnel.errors import ErrorCode, RunnelError

METADATA_VERSION: Final = "metadata.version"
TRANSACTION_VERSION: Final = "transaction.version"


class Feature(NamedTuple):
    name: str
    min_level: int
    max_level: int
    initial_level: int


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


SUPPORTED: Final = {
    feature.name: feature
    for feature in (
        Feature("eligible.leader.replicas.version", 0, 1, 1),
        Feature("group.version", 0, 1, 1),
        Feature("kraft.version", 0, 0, 0),
        Feature(METADATA_VERSION, 7, 30, 30),  # 3.3-IV3 to 4.3-IV0
        Feature("share.version", 0, 0, 0),
        Feature("streams.version", 0, 0, 0),
        Feature(TRANSACTION_VERSION, 0, 2, 2),
    )
}


def finalized(stored: Mapping[str, int]) -> dict[str, int]:
    """Every level that is above 0, by name; `stored` is what the metadata store holds."""
    levels = {feature.name: feature.initial_level for feature in SUPPORTED.values()} | dict(stored)
    return {name: level for name, level in levels.items() if level > 0}


def level_of(stored: Mapping[str, int], name: str) -> int:
    """The finalized level of one feature; 0 if it is switched off."""
    return stored.get(name, SUPPORTED[name].initial_level)


def ensure_may_change(
    stored: Mapping[str, int], name: str, level: int, upgrade_type: int, controller_id: int
) -> None:
    """Raises INVALID_UPDATE_VERSION, with Kafka's reasons."""
    unsupported = f"Local controller {controller_id} does not support this feature."
    feature = SUPPORTED.get(name)
    current = finalized(stored).get(name, 0)
    why = None
    if upgrade_type not in UpgradeType.__members__.values():
        why = "The controller does not support the given upgrade type."
    elif level < 0:
        why = "A feature version cannot be less than 0."
    elif feature is None:
        why = unsupported
    elif level != 0 and not feature.min_level <= level <= feature.max_level:
        why = (
            f"Local controller {controller_id} only supports versions "
            f"{feature.min_level}-{feature.max_level}"
            if feature.max_level
            else unsupported
        )
    elif level < current and upgrade_type == UpgradeType.UPGRADE:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif level > current and upgrade_type != UpgradeType.UPGRADE:
        why = "Can't downgrade to a newer version."
    elif name == METADATA_VERSION and level < current:
        why = (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
    if why is not None:
        raise RunnelError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {level} for feature {name}. {why}",
        )
