"""The shell of `runnel sql`: statements until `;`, commands that begin with a dot, a history."""

import atexit
import os
import re
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.cli.output import EXIT_FAILED, EXIT_REFUSED, note, show_line, show_texts
from runnel.cli.sql_output import FORMATS, write
from runnel.cli.sql_running import Watched

if TYPE_CHECKING:
    from runnel.query.connection import Connection

RAW: Final = "raw"  # see `runnel.query.views`
PROMPT, CONTINUED = "runnel> ", "   ...> "
HISTORY_LINES: Final = 1000
HELP: Final = """\
select ...;         a statement, over as many lines as it takes, up to ';'
.tables             topics and tables
.schema NAME        columns of a topic or table
.mode [FORMAT]      how rows are shown: table, csv or json
.limit [ROWS]       how many rows of a table are shown; 0 for all
.timing [on|off]    tell what each statement read, and how long it took
.help               this text
.quit               leave; Ctrl-D does so, too. Ctrl-C ends the statement that runs."""


class Shell:
    def __init__(self, connection: "Connection", mode: str, limit_rows: int) -> None:
        self._connection, self._mode, self._limit_rows = connection, mode, limit_rows
        self._timing = False
        self._status = 0  # to exit with
        self._names: list[str] = []  # of topics and tables, once they were asked for
        self._watched = Watched(connection)
        self._commands: dict[str, Callable[[str], None]] = {
            ".tables": self._tables,
            ".schema": self._schema,
            ".mode": self._set_mode,
            ".limit": self._set_limit,
            ".timing": self._set_timing,
            ".help": lambda _: show_line(HELP),
        }

    def run(self) -> int:
        """Until `.quit` or the end of what is typed. The status to exit with: of what is piped in,
        that of the first statement that failed.
        """
        is_terminal = sys.stdin.isatty()
        if is_terminal:
            _remember()
            _complete(self._words)
            show_line("SQL over topics: end a statement with ';', .help tells more, .quit leaves.")
        try:
            self._read(is_terminal)
        finally:
            self._watched.close()
        return 0 if is_terminal else self._status

    def _read(self, is_terminal: bool) -> None:
        typed = ""
        while True:
            try:
                line = _line((CONTINUED if typed else PROMPT) if is_terminal else "")
            except KeyboardInterrupt:
                typed = ""
                show_line("")
                continue
            if line is None:
                if typed.strip():
                    self._statement(typed)
                return
            if not typed and line.strip().startswith("."):
                if line.split()[0] in (".quit", ".exit"):
                    return
                self._command(line.strip())
                continue
            typed += line + "\n"
            if is_whole(typed):
                self._statement(typed)
                typed = ""
            elif not typed.strip():
                typed = ""

    def _words(self) -> list[str]:
        """What the tab key completes; nothing while no broker answers."""
        from runnel.query.errors import QueryError

        if not self._names:
            with suppress(QueryError):
                names = [*self._connection.topics(), *self._connection.relations()]
                self._names = [name if name.isidentifier() else f'"{name}"' for name in names]
        return [*self._commands, ".quit", *self._names]

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        command = self._commands.get(name)
        if command is None:
            self._failed(EXIT_REFUSED)
            note(f"there is no {name}; .help shows what there is")
            return
        self._tried(lambda: command(rest.strip().rstrip(";")))

    def _statement(self, text: str) -> None:
        self._tried(lambda: self._run(text))

    def _tried(self, call: Callable[[], None]) -> None:
        from runnel.cli.sql import option_words
        from runnel.query.errors import FailedError, QueryError

        try:
            call()
        except QueryError as error:
            self._failed(EXIT_FAILED if isinstance(error, FailedError) else EXIT_REFUSED)
            note(option_words(str(error)))
        except KeyboardInterrupt:
            note("ended")

    def _failed(self, status: int) -> None:
        self._status = self._status or status

    def _run(self, text: str) -> None:
        result = self._watched.result(text)
        rows = 0
        if result.has_rows:
            with closing(self._watched.batches(result)) as batches:
                rows = write(batches, result.columns, self._mode, None, self._limit_rows)
        for remark in result.notes:
            note(f"note: {remark}")
        if self._timing:
            note(self._watched.stats(result, rows))

    def _tables(self, _: str) -> None:
        topics = [[name, "topic"] for name in self._connection.topics()]
        tables = [[name, "lake table"] for name in self._connection.relations()]
        show_texts(("name", "kind"), topics + tables, (False, False))

    def _schema(self, name: str) -> None:
        if not name:
            note("name a topic or table: .schema orders")
            return
        schema, dot, rest = name.partition(".")
        prefix, bare = (f"{RAW}.", rest) if dot and schema == RAW else ("", name)
        bare = bare.strip('"').replace('"', '""')
        described = self._watched.result(f'describe {prefix}"{bare}"')
        rows = [[str(row[0]), str(row[1])] for row in described]
        show_texts(("column", "type"), rows, (False, False))
        for remark in described.notes:
            note(f"note: {remark}")

    def _set_mode(self, mode: str) -> None:
        modes = [each for each in FORMATS if each != "parquet"]
        if mode in modes:
            self._mode = mode
        else:
            note(f"rows are shown as {self._mode}; choose {', '.join(modes)}")

    def _set_limit(self, rows: str) -> None:
        if rows.isdecimal():
            self._limit_rows = int(rows)
        else:
            note(f"{self._limit_rows} rows of a table are shown; write a number, 0 for all")

    def _set_timing(self, wanted: str) -> None:
        self._timing = (not self._timing) if not wanted else wanted == "on"
        note(f"timing is {'on' if self._timing else 'off'}")


_SKIPPED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_UNFINISHED: Final = re.compile(r"'|\"|/\*")


def is_whole(typed: str) -> bool:
    """Whether the text ends with a `;` that is not within quotes or a comment."""
    bare = _SKIPPED.sub(lambda found: "" if found[0][:2] in ("--", "/*") else "x", typed)
    return bare.rstrip().endswith(";") and not _UNFINISHED.search(bare)


def _line(prompt: str) -> str | None:
    """None at the end. Raises KeyboardInterrupt."""
    if not prompt:
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    try:
        return input(prompt)
    except EOFError:
        show_line("")
        return None


def _remember() -> None:
    """Lines typed before, by the arrow keys; where there is no readline there is no history."""
    with suppress(ImportError, OSError):
        import readline

        folder = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        path = Path(folder).expanduser() / "runnel" / "sql_history"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            readline.read_history_file(path)
        readline.set_history_length(HISTORY_LINES)
        atexit.register(_kept, path)


def _complete(words: Callable[[], list[str]]) -> None:
    with suppress(ImportError):
        import readline

        def nth(begun: str, number: int) -> str | None:
            found = [each for each in words() if each.lower().startswith(begun.lower())]
            return found[number] if number < len(found) else None

        readline.set_completer(nth)
        readline.set_completer_delims(" \t\n,();=")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")


def _kept(path: Path) -> None:
    import readline

    with suppress(OSError):
        readline.write_history_file(path)
        path.chmod(0o600)
