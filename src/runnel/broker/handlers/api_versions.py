"""ApiVersions (key 18, v0-v4): what this broker speaks, derived from the table of APIs.

Version notes: v3 is flexible but its response header never is; v3 and later say which client
software asks. A version we do not know is answered in version 0 with UNSUPPORTED_VERSION and
our range for this one API, so that any client can fall back (KIP-511). v3 is read by clients that
do not bear a feature whose lowest level is 0, so those are told from v4 on (KAFKA-17011).
"""

import re
from collections.abc import Iterable
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.cluster.features import SUPPORTED, finalized
from runnel.errors import ErrorCode
from runnel.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FIRST_VERSION_WITH_SOFTWARE: Final = 3
FIRST_VERSION_WITH_LEVEL_0: Final = 4
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SOFTWARE_CHARACTERS_MAX: Final = 1024


class AdvertisedVersions:
    """The handler, made with the table that it advertises."""

    def __init__(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        self._versions = [
            ApiVersion(api_key=key, min_version=oldest, max_version=newest)
            for key, oldest, newest in sorted(ranges)
        ]

    def __call__(
        self, context: RequestContext, services: Services, request: ApiVersionsRequest | None
    ) -> ApiVersionsResponse:
        if request is None:
            return ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                api_keys=[version for version in self._versions if version.api_key == 18],
            )
        if context.api_version >= FIRST_VERSION_WITH_SOFTWARE and not (
            _is_software(request.client_software_name)
            and _is_software(request.client_software_version)
        ):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        image = services.image
        return ApiVersionsResponse(
            api_keys=self._versions,
            supported_features=[
                SupportedFeatureKey(
                    name=feature.name,
                    min_version=feature.min_level,
                    max_version=feature.max_level,
                )
                for feature in SUPPORTED.values()
                if feature.min_level or context.api_version >= FIRST_VERSION_WITH_LEVEL_0
            ],
            finalized_features_epoch=image.features_epoch,
            finalized_features=[
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in finalized(image.features).items()
            ],
        )


def _is_software(text: str) -> bool:
    return len(text) <= SOFTWARE_CHARACTERS_MAX and _SOFTWARE.fullmatch(text) is not None
