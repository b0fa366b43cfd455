"""docs/compatibility.md says what the drivers, the findings and the broker's own tables say."""

from tests.compat.clients import DRIVERS
from tests.compat.findings import disagreements, not_applicable
from tests.compat.operations import OPERATIONS
from tools.document_compatibility import (
    LANGUAGES,
    SUBJECTS,
    TARGET,
    document,
    named_twice_or_never,
)

CLIENTS = [driver.name for driver in DRIVERS]


def test_the_page_is_what_the_script_writes() -> None:
    assert TARGET.read_text() == document(), (
        "run: PYTHONPATH=src:. python tools/document_compatibility.py"
    )


def test_every_client_and_operation_has_its_place() -> None:
    assert not named_twice_or_never(CLIENTS, LANGUAGES.values())
    assert not named_twice_or_never(OPERATIONS, SUBJECTS.values())


def test_the_findings_name_clients_and_operations_that_there_are() -> None:
    for client, operation in not_applicable():
        assert client in CLIENTS and operation in OPERATIONS, (client, operation)


def test_a_run_that_found_something_else_is_told() -> None:
    assert disagreements("aiokafka", {"group, consumer", "two members, consumer", "gzip"}) == [
        "aiokafka: FINDINGS.md says n/a, but it ran: delete group",
        "aiokafka: n/a, but not in FINDINGS.md: gzip",
    ]
    assert disagreements("franz-go", set()) == []
