"""UpdateFeatures (key 57), versions 0-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT8,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class FeatureUpdateKey:
    feature: str = wire(STRING, default="")
    max_version_level: int = wire(INT16, default=0)
    allow_downgrade: bool = wire(BOOL, default=False, until=0)
    upgrade_type: int = wire(INT8, default=1, since=1)


@message(api_key=57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesRequest:
    timeout_ms: int = wire(INT32, default=60000)
    feature_updates: list[FeatureUpdateKey] = wire(array_of(FeatureUpdateKey), default_factory=list)
    validate_only: bool = wire(BOOL, default=False, since=1)


@struct
class UpdatableFeatureResult:
    feature: str = wire(STRING, default="")
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")


@message(api_key=57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    results: list[UpdatableFeatureResult] = wire(
        array_of(UpdatableFeatureResult), default_factory=list, until=1, ignorable=True
    )
