"""Lines of logs as people read them, and as JSON."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from runnel.cli.output import show_json
from runnel.query.far_times import time_text

if TYPE_CHECKING:
    from runnel.logs.filters import LogRecord
    from runnel.logs.lines import Line
    from runnel.logs.search import Hit

LINE_CHARS_MAX: Final = 4000  # of a message or a field; --json shows all of it
_RESET, _DIM, _BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"
_COLOURS: Final = {
    "trace": _DIM,
    "debug": _DIM,
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}


class Printer:
    """Writes lines to standard output, in colours on a terminal."""

    def __init__(self, topic: str, *, as_json: bool) -> None:
        self._topic, self._as_json = topic, as_json
        self._coloured = sys.stdout.isatty()

    def show(self, record: "LogRecord", line: "Line", *, is_match: bool = True) -> None:
        if self._as_json:
            show_json(document_of(self._topic, record, line))
        else:
            sys.stdout.write(self._text(record, line, is_match))

    def show_group(self, group: "Sequence[Hit]", *, is_first: bool) -> None:
        """A match and what stands around it, apart from the group before as `grep -C` has it."""
        if self._as_json:
            for at, hit in enumerate(group):
                if hit.is_match:
                    show_json(self._with_context(group, at))
            return
        if not is_first:
            sys.stdout.write("--\n")
        for hit in group:
            self.show(hit.record, hit.line, is_match=hit.is_match)

    def _with_context(self, group: "Sequence[Hit]", at: int) -> dict[str, object]:
        around = [document_of(self._topic, hit.record, hit.line) for hit in group]
        return {**around[at], "before": around[:at], "after": around[at + 1 :]}

    def _text(self, record: "LogRecord", line: "Line", is_match: bool) -> str:
        stamp = _local_time(record.timestamp_ms)
        level = f"{line.level.upper():<8}"
        where = " ".join(part for part in (line.service, line.logger) if part)
        fields = " ".join(f"{name}={_shown(text)}" for name, text in line.fields.items())
        message = _shown(line.message)
        if self._coloured:
            stamp = f"{_DIM}{stamp}{_RESET}"
            level = f"{_COLOURS.get(line.level, '')}{level}{_RESET}"
            where = f"\x1b[36m{where}{_RESET}" if where else ""
            fields = f"{_DIM}{fields}{_RESET}" if fields else ""
            message = f"{_BOLD}{message}{_RESET}" if is_match else f"{_DIM}{message}{_RESET}"
        text = " ".join(part for part in (stamp, level, where, message, fields) if part)
        lines = [text.rstrip()]
        lines += [f"    {_shown(row)}" for row in line.exception.splitlines()]
        return "\n".join(lines) + "\n"


def document_of(topic: str, record: "LogRecord", line: "Line") -> dict[str, object]:
    """What is known of a line; what a record does not say is left out."""
    said = {name: value for name, value in line._asdict().items() if value and name != "is_json"}
    return {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": time_text(max(0, record.timestamp_ms) * 1000),
        **said,
    }


def _local_time(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(max(0, timestamp_ms) / 1000)
    except (ValueError, OverflowError, OSError):  # after the year 9999
        return time_text(timestamp_ms * 1000).replace("T", " ")
    return moment.isoformat(" ", "milliseconds")


def _shown(text: str) -> str:
    """On one line, and nothing that a terminal would obey."""
    if len(text) > LINE_CHARS_MAX:
        text = text[:LINE_CHARS_MAX] + "..."
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
