"""Examples in documents: what a reader would type, run in order, and compared with what is shown.

    ```console
    $ runnel topic create orders --partitions 3
    created orders with 3 partitions
    ```

Lines after `$ ` are the command, lines after `> ` go on with it, all others are what it prints. In
the output `...` stands for anything, on a line of its own for any lines; how long something took is
not compared. Without output shown, the command has to succeed and that is all. A command that is
shown to print `runnel: ...` has to fail. A broker that is started without any setting (`make run`,
`runnel serve`) is the test's own: what it prints is looked for in the log. One with settings is
started apart and stopped when it is ready. `blocks.py` says what becomes of other blocks.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.blocks import BlockError, blocks_of

ADDRESS, OTHER_ADDRESS = "localhost:9092", "127.0.0.1:9092"  # as documents write them
_STARTS_A_BROKER = re.compile(r"(\w+=\S+ )*(make (run|try)|runnel serve)\b(?!.*--help)")
_DURATION = re.compile(r"\b\d+(\.\d+)? (ms|s)\b|[\d,.]+ a second")


class Example(NamedTuple):
    line: int  # in the document, of the command
    command: str
    output: list[str]

    @property
    def starts_a_broker(self) -> bool:
        return _STARTS_A_BROKER.match(self.command) is not None

    @property
    def has_settings(self) -> bool:
        return self.command.split() not in (["runnel", "serve"], ["make", "run"], ["make", "try"])

    @property
    def has_to_fail(self) -> bool:
        return any(line.startswith("runnel: ") for line in self.output)


def examples_of(document: Path) -> Iterator[Example]:
    """The commands, programs and files of a document, in order, as commands of a shell."""
    unused: dict[str, int] = {}
    for block in blocks_of(document):
        if block.run_by is not None or block.is_shown_only:
            continue
        if block.title is not None and block.language != "console":
            unused[block.title] = block.line
            yield Example(block.line, _here(f"cat > {block.title}", block.body), [])
        elif block.language == "python":
            yield Example(block.line, _here("python -", block.body), [])
        else:
            for example in commands_of(block.body, block.line):
                for file in [file for file in unused if file in example.command]:
                    del unused[file]
                yield example
    for file, line in unused.items():
        raise BlockError(f"{document.name}:{line - 1}: no command uses {file}")


def _here(command: str, text: str) -> str:
    return f"{command} <<'END_OF_EXAMPLE'\n{text}END_OF_EXAMPLE"


def commands_of(body: str, first_line: int) -> Iterator[Example]:
    """Of one console block; `first_line` is where it stands in its document."""
    current: Example | None = None
    for number, line in enumerate(body.splitlines(), first_line):
        if line.startswith("$ "):
            if current is not None:
                yield current
            current = Example(number, line[2:], [])
        elif line.startswith("> ") and current is not None and not current.output:
            current = current._replace(command=f"{current.command}\n{line[2:]}")
        elif current is not None:
            current.output.append(line)
    if current is not None:
        yield current


def agrees(shown: list[str], printed: str) -> bool:
    """Whether a command printed what the document shows."""
    while shown and not shown[-1].strip():
        shown = shown[:-1]
    if not shown:
        return True
    parts = [
        r"(?:[^\n]*\n)*?" if line.strip() == "..." else _pattern(line) + r"[ \t]*\n"
        for line in shown
    ]
    text = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    return re.fullmatch("".join(parts), _DURATION.sub("?", text)) is not None


def _pattern(line: str) -> str:
    line = line.rstrip().replace(OTHER_ADDRESS, ADDRESS)
    pieces = _DURATION.sub("?", line).split("...")
    return "[^\n]*".join(re.escape(piece) for piece in pieces)
