"""One run of one of Kafka's tools."""

from typing import NamedTuple


class Command(NamedTuple):
    # With & before it, it goes on beside the commands after it; with ! it has a JVM of its own.
    tool: str
    arguments: str  # separated by spaces; none of ours holds one
    stdin: str = ""

    def __str__(self) -> str:
        return f"{self.tool.lstrip('&!')} {self.arguments}"


def each(tool: str, lines: str) -> list[Command]:
    """A command for each line, about the broker under test."""
    return [
        Command(tool, f"--bootstrap-server {{bootstrap}} {line}")
        for line in lines.strip().splitlines()
    ]
