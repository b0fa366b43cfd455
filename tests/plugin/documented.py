"""The programs in docs/testing.md, as files that can be run."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/testing.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Of the clients that the document shows, what the broker's own environment does not have.
OTHER_CLIENTS = ("kafka", "aiokafka")


def blocks(language: str) -> list[str]:
    found = [text for name, text in _BLOCK.findall(DOCUMENT.read_text()) if name == language]
    assert found, f"{DOCUMENT.name} has no {language} in it"
    return found


def needs_other_client(program: str) -> bool:
    return any(re.search(rf"^from {client} import", program, re.M) for client in OTHER_CLIENTS)


def write_tests(folder: Path, programs: list[str]) -> None:
    """Each as a file for pytest; one without a test is run as it is imported."""
    for number, program in enumerate(programs):
        if "def test_" not in program:
            body = "".join(f"    {line}\n" if line else "\n" for line in program.splitlines())
            program = f"def test_it_runs():\n{body}"
        (folder / f"documented_{number}_test.py").write_text(program)
