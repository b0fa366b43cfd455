"""The declarations are what tools/declare.py makes of the tables."""

import subprocess
import sys
from pathlib import Path

import pytest

from runnel.wire.apis import (
    APIS,
    ApiKey,
    request_header_version,
    request_type,
    response_header_version,
    response_type,
)
from runnel.wire.schema import schema_of
from tools import declare


def test_the_declarations_agree_with_the_tables() -> None:
    assert declare.differences() == []


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = declare.declarations()
    changed, dropped, *_ = wanted
    monkeypatch.setattr(
        declare,
        "declarations",
        lambda: {p: t for p, t in wanted.items() if p != dropped} | {changed: "changed"},
    )
    assert declare.differences() == sorted(
        f"{path.relative_to(declare.ROOT)} differs from the tables" for path in (changed, dropped)
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LogAppendTimeMs", "log_append_time_ms"),
        ("TopicData", "topic_data"),
        ("commitTimestamp", "commit_timestamp"),
        ("ISRs", "is_rs"),
        ("From", "from_"),
    ],
)
def test_names_become_snake_case(name: str, expected: str) -> None:
    assert declare.snake(name) == expected


def test_every_api_has_its_messages_and_offers_no_version_they_lack() -> None:
    for key, api in APIS.items():
        for cls in (request_type(key), response_type(key)):
            schema = schema_of(cls)
            assert schema.api_key == key
            assert set(api.versions) <= set(schema.versions), schema.name
            assert schema.flexible_since == api.flexible_since
    assert set(ApiKey) - set(APIS) == {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    }
    assert APIS[ApiKey.INIT_PRODUCER_ID].versions == range(6), "version 6 is unstable"
    assert schema_of(request_type(ApiKey.INIT_PRODUCER_ID)).latest_version == 6


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 4, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.DESCRIBE_CLUSTER, 0, 2, 1),
    ],
)
def test_header_versions(
    key: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header


def test_importing_the_table_imports_no_message(tmp_path: Path) -> None:
    code = (
        "import sys, runnel.wire.apis, runnel.wire.compiler;"
        "print(*(m for m in sys.modules if m.startswith('runnel.wire.messages.')), end='')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(declare.ROOT / "src")},
    )
    assert ran.stdout == "runnel.wire.messages.index"
