"""DescribeClientQuotas (key 48, v0-v1) and AlterClientQuotas (key 49, v0-v1).

Version notes: v1 is the flexible one, nothing else. An alteration that is wrong is refused by
itself, the others of its request are carried out, in as few transactions as they fit. It takes
effect on this broker before the answer leaves.
"""

from collections.abc import Iterable
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.cluster.client_quotas import (
    CLIENT_ID,
    ENTITIES_MAX,
    IP,
    USER,
    Entity,
    QuotaAlteration,
    alteration,
    entity_of,
)
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from runnel.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2

Names = tuple[tuple[str, str | None], ...]


class Filter:
    """Which entities a description is about. Raises RunnelError where it contradicts itself."""

    __slots__ = ("_any", "_exact", "_strict")

    def __init__(self, components: Iterable[ComponentData], *, strict: bool) -> None:
        self._exact: dict[str, str | None] = {}
        self._any: set[str] = set()
        self._strict = strict
        for component in components:
            self._take(component)
        kinds = self._exact.keys() | self._any
        if IP in kinds and len(kinds) > 1:
            raise _invalid(
                "Invalid entity filter component combination. IP filter component should not be "
                "used with user or clientId filter component."
            )

    def _take(self, component: ComponentData) -> None:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in self._exact or kind in self._any:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise RunnelError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        how, name = component.match_type, component.match
        if how not in (EXACT, DEFAULT, ANY):
            raise _invalid(f"Unknown match type {how}")
        if how == EXACT and name is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if how != EXACT and name is not None:
            word = "DEFAULT" if how == DEFAULT else "SPECIFIED"
            raise _invalid(
                f"Request specified MATCH_TYPE_{word}, but also specified a match string."
            )
        if how == ANY:
            self._any.add(kind)
        else:
            self._exact[kind] = name

    def accepts(self, entity: Entity) -> bool:
        names = dict(entity)
        if self._strict and len(names) != len(self._exact) + len(self._any):
            return False
        return self._any <= names.keys() and all(
            kind in names and names[kind] == name for kind, name in self._exact.items()
        )


def describe_client_quotas(
    context: RequestContext, services: Services, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        wanted = Filter(request.components, strict=request.strict)
    except RunnelError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=str(error), entries=None
        )
    quotas = services.image.client_quotas
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in quota.values.items()],
            )
            for entity, quota in quotas.items()
            if wanted.accepts(entity)
        ],
    )


async def alter_client_quotas(
    context: RequestContext, services: Services, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    quotas = services.image.client_quotas
    accepted: dict[Entity, QuotaAlteration] = {}
    results: dict[Names, RunnelError | None] = {}
    for entry in request.entries:
        names = tuple([(each.entity_type, each.entity_name) for each in entry.entity])
        try:
            entity = entity_of(names)
            if entity in accepted:
                raise _invalid("Ignoring duplicate entity")
            if entity not in quotas and len(quotas) + len(accepted) >= ENTITIES_MAX:
                raise _invalid(f"There are {ENTITIES_MAX} entities with quotas: remove some first")
            operations = [(op.key, None if op.remove else op.value) for op in entry.ops]
            accepted[entity] = alteration(entity, operations)
            results[names] = None
        except RunnelError as error:
            results[names] = error
    if accepted and not request.validate_only:
        try:
            await services.membership.alter_client_quotas(list(accepted.values()))
        except RunnelError as error:
            results = {names: refusal or error for names, refusal in results.items()}
    return AlterClientQuotasResponse(
        entries=[_result(names, refusal) for names, refusal in results.items()]
    )


def _result(names: Names, refusal: RunnelError | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else str(refusal),
        entity=[
            AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
            for kind, name in names
        ],
    )


def _invalid(why: str) -> RunnelError:
    return RunnelError(ErrorCode.INVALID_REQUEST, why)
