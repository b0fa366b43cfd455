"""ApiVersions (key 18), versions 0-4, flexible from 3.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsRequest:
    client_software_name: str = wire(STRING, default="", since=3, ignorable=True)
    client_software_version: str = wire(STRING, default="", since=3, ignorable=True)


@struct
class ApiVersion:
    api_key: int = wire(INT16, default=0)
    min_version: int = wire(INT16, default=0)
    max_version: int = wire(INT16, default=0)


@struct
class SupportedFeatureKey:
    name: str = wire(STRING, default="", since=3)
    min_version: int = wire(INT16, default=0, since=3)
    max_version: int = wire(INT16, default=0, since=3)


@struct
class FinalizedFeatureKey:
    name: str = wire(STRING, default="", since=3)
    max_version_level: int = wire(INT16, default=0, since=3)
    min_version_level: int = wire(INT16, default=0, since=3)


@message(api_key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsResponse:
    error_code: int = wire(INT16, default=0)
    api_keys: list[ApiVersion] = wire(array_of(ApiVersion), default_factory=list)
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = wire(
        array_of(SupportedFeatureKey), default_factory=list, since=3, tag=0, ignorable=True
    )
    finalized_features_epoch: int = wire(INT64, default=-1, since=3, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = wire(
        array_of(FinalizedFeatureKey), default_factory=list, since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = wire(BOOL, default=False, since=3, tag=3, ignorable=True)
