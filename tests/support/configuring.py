"""Settings asked for and altered over the wire, with as few words as a test needs."""

from runnel.broker.handlers.config_resources import ResourceType
from runnel.config.alterations import Operation
from runnel.wire.messages.alter_configs import (
    AlterableConfig as LegacyConfig,
)
from runnel.wire.messages.alter_configs import (
    AlterConfigsRequest,
)
from runnel.wire.messages.alter_configs import (
    AlterConfigsResource as LegacyResource,
)
from runnel.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from runnel.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.desk import Desk

Answer = tuple[int, str | None]  # error code and message

TOPIC = ResourceType.TOPIC
BROKER = ResourceType.BROKER
NEWEST = -1


def incremental(
    kind: int, name: str, *changes: tuple[str, Operation, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    configs = [AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


async def alter(
    desk: Desk, kind: int, name: str, *changes: tuple[str, Operation, str | None],
    validate_only: bool = False, version: int = NEWEST,
) -> Answer:  # fmt: skip
    request = incremental(kind, name, *changes, validate_only=validate_only)
    (answer,) = (await desk.ask(request, version)).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer.error_code, answer.error_message


async def set_configs(
    desk: Desk, kind: int, name: str, configs: dict[str, str | None], **options: bool
) -> Answer:
    changes = [(n, Operation.SET, value) for n, value in configs.items()]
    return await alter(desk, kind, name, *changes, **options)


async def unset(desk: Desk, kind: int, name: str, *names: str) -> Answer:
    return await alter(desk, kind, name, *[(n, Operation.DELETE, None) for n in names])


async def replace(
    desk: Desk, kind: int, name: str, configs: dict[str, str | None], *,
    validate_only: bool = False, version: int = NEWEST,
) -> Answer:  # fmt: skip
    named = [LegacyConfig(name=n, value=value) for n, value in configs.items()]
    resource = LegacyResource(resource_type=kind, resource_name=name, configs=named)
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = (await desk.ask(request, version)).responses
    return answer.error_code, answer.error_message


async def described(
    desk: Desk, kind: int, name: str, *keys: str, synonyms: bool = False, version: int = NEWEST
) -> dict[str, DescribeConfigsResourceResult]:
    result = await describe(desk, kind, name, *keys, synonyms=synonyms, version=version)
    assert (result.error_code, result.error_message) == (0, None)
    found = {config.name: config for config in result.configs}
    assert len(found) == len(result.configs)
    return found


async def describe(
    desk: Desk, kind: int, name: str, *keys: str, synonyms: bool = False, version: int = NEWEST
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    (result,) = (await desk.ask(request, version)).results
    described: DescribeConfigsResult = result
    return described
