"""What FINDINGS.md says of clients that lack an operation, as data; a run has to find the same."""

import re
from pathlib import Path

FINDINGS = Path(__file__).with_name("FINDINGS.md")
_HEAD = "| client | operations | why |"


def not_applicable() -> dict[tuple[str, str], str]:
    """(client, operation) -> why there is no such call."""
    table = FINDINGS.read_text().partition(_HEAD)[2].partition("\n\n")[0]
    found: dict[tuple[str, str], str] = {}
    for row in re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", table, re.MULTILINE):
        clients, operations, why = row
        for client in clients.split(", "):
            for operation in operations.split("; "):
                assert (client, operation) not in found, f"{client}: {operation} stands there twice"
                found[client, operation] = why
    return found


def disagreements(client: str, lacking: set[str]) -> list[str]:
    """What a run found of a client, against the table."""
    said = {operation for name, operation in not_applicable() if name == client}
    return [
        *(f"{client}: FINDINGS.md says n/a, but it ran: {name}" for name in sorted(said - lacking)),
        *(f"{client}: n/a, but not in FINDINGS.md: {name}" for name in sorted(lacking - said)),
    ]
