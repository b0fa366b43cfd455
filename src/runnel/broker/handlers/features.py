"""UpdateFeatures (key 57, v0-v2): raise or lower the finalized level of a feature (KIP-584).

Version notes: v1 names the kind of upgrade and may only validate; up to v1 every feature has a
result of its own, from v2 on there is one error for all. Either all updates are made or none.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.cluster.features import UpgradeType, ensure_may_change
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_VERSION_WITH_UPGRADE_TYPE: Final = 1
FIRST_VERSION_WITHOUT_RESULTS: Final = 2


async def update_features(
    context: RequestContext, services: Services, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    updates = request.feature_updates
    try:
        _ensure_each_once(updates)
        stored = services.image.features
        for update in updates:
            kind = _upgrade_type(context, update)
            ensure_may_change(
                stored,
                update.feature,
                update.max_version_level,
                kind,
                services.settings.node_id,
            )
        if updates and not request.validate_only:
            await services.membership.update_features(
                {update.feature: update.max_version_level for update in updates}
            )
    except RunnelError as error:
        why = str(error)
        if error.code == ErrorCode.INVALID_UPDATE_VERSION:
            why = (
                "The update failed for all features since the following feature had an error: "
                + why
            )
        return UpdateFeaturesResponse(error_code=error.code, error_message=why)
    results: list[UpdatableFeatureResult] = []
    if context.api_version < FIRST_VERSION_WITHOUT_RESULTS:
        results = [
            UpdatableFeatureResult(feature=update.feature, error_message=None) for update in updates
        ]
    return UpdateFeaturesResponse(error_message=None, results=results)


def _ensure_each_once(updates: list[FeatureUpdateKey]) -> None:
    if len({update.feature for update in updates}) < len(updates):
        raise RunnelError(ErrorCode.INVALID_REQUEST, "a feature is given twice")


def _upgrade_type(context: RequestContext, update: FeatureUpdateKey) -> int:
    if context.api_version >= FIRST_VERSION_WITH_UPGRADE_TYPE:
        return update.upgrade_type
    return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
