"""A record of a topic as a line of a log, whoever wrote it.

JSON objects with the names that loggers use are taken apart (Runnel's own, and those of structlog,
pino, zap, logback, Elastic's and others); all that is not named here is a field. Anything else is a
line of text. Nothing is refused: a log is read when something has gone wrong already.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

LEVELS: Final = ("trace", "debug", "info", "warning", "error", "critical")  # rising
_LEVEL_NAMES: Final = {
    **{name: name for name in LEVELS},
    **{"verbose": "trace", "fine": "debug", "dbug": "debug", "information": "info"},
    **{"notice": "info", "warn": "warning", "err": "error", "severe": "error"},
    **{"fatal": "critical", "crit": "critical", "panic": "critical", "dpanic": "critical"},
    **{"alert": "critical", "emerg": "critical", "emergency": "critical"},
}
_SYSLOG: Final = ("critical", "critical", "critical", "error", "warning", "info", "info", "debug")
_IN_TEXT: Final = re.compile(r"\b(TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|PANIC)\b")
_IN_TEXT_CHARS: Final = 80  # where a line of text names its level
_NESTED_MAX: Final = 8
_TIME = frozenset({"ts", "timestamp", "time", "@timestamp", "asctime"})
_LEVEL = ("level", "severity", "levelname", "log.level", "lvl")
_MESSAGE = ("message", "msg", "event")
_SERVICE = ("service", "service.name", "app", "application")
_LOGGER = ("logger", "logger_name", "log.logger", "name")
_HOST = ("host", "hostname", "host.name")
_THREAD = ("thread", "thread_name", "threadName")
_EXCEPTION = ("exception", "stack_trace", "stacktrace", "exc_info", "error.stack_trace", "stack")
_EXCEPTIONS: Final = frozenset(_EXCEPTION)
_GROUPS: Final = frozenset({"fields", "extra", "context", "labels"})  # whose names say nothing
_KNOWN: Final = frozenset(
    {*_LEVEL, *_MESSAGE, *_SERVICE, *_LOGGER, *_HOST, *_THREAD, *_EXCEPTION, *_TIME, "pid"}
)


class _Number(str):
    """A number with a fraction, as it stands in the record: that is what people look for."""

    __slots__ = ()


_DECODER: Final = json.JSONDecoder(parse_float=_Number)


class Line(NamedTuple):
    """What a reader wants to know. Texts are empty where a record does not say."""

    message: str
    level: str = ""  # one of LEVELS, or the record's own word
    service: str = ""
    logger: str = ""
    host: str = ""
    pid: str = ""
    thread: str = ""
    exception: str = ""
    fields: Mapping[str, str] = {}
    is_json: bool = False


def parsed(value: bytes | None) -> Line:
    """Never raises."""
    if not value:
        return Line("")
    if value[:1] == b"{":
        try:
            document = _DECODER.decode(value.decode())
        except (ValueError, RecursionError):
            pass
        else:
            return _of_object(document)
    text = without_surrogates(value.decode("utf-8", "replace"))
    named = _IN_TEXT.search(text, 0, _IN_TEXT_CHARS)
    return Line(text, _LEVEL_NAMES[named[1].lower()] if named else "")


def level_at_least(level: str, least: str) -> bool:
    """Whether a line of `level` is as bad as `least` or worse; one without a level is not."""
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(least)


def level_of(value: object) -> str:
    """Names as loggers write them, numbers of pino and bunyan (30 is info) and of syslog."""
    if type(value) is str:  # as nearly all are
        found = _LEVEL_NAMES.get(value)
        if found is not None:
            return found
    if isinstance(value, bool) or value is None:
        return ""
    value = _plain(value)
    if isinstance(value, int | float):
        if 0 <= value < 8:
            return _SYSLOG[int(value)]
        return LEVELS[min(max(int(value) // 10 - 1, 0), len(LEVELS) - 1)]
    text = str(value).strip().lower()
    return _LEVEL_NAMES.get(text, text)


def text_of(value: object) -> str:
    """As a person would write it: strings as they are, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, _Number):
        return float(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def without_surrogates(text: str) -> str:
    """Half of a pair, as JSON can hold, is no text that a file or a terminal would take."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _of_object(document: dict[str, Any]) -> Line:
    fields: dict[str, str] = {}
    for name, value in document.items():
        if name in _KNOWN:
            continue
        if type(value) is dict:
            _flatten(fields, "" if name in _GROUPS else f"{name}.", value, 1)
        else:
            fields[without_surrogates(name)] = _text(value)
    return Line(
        _text(_first(document, _MESSAGE)),
        level_of(_first(document, _LEVEL)),
        _text(_first(document, _SERVICE)),
        _text(_first(document, _LOGGER)),
        _text(_first(document, _HOST)),
        _text(document.get("pid")),
        _text(_first(document, _THREAD)),
        "" if _EXCEPTIONS.isdisjoint(document) else _text(_first(document, _EXCEPTION)),
        fields,
        True,
    )


def _first(document: Mapping[str, Any], names: tuple[str, ...]) -> object:
    for name in names:
        value = document.get(name)
        if value is not None:
            return value
    return None


def _text(value: object) -> str:
    if type(value) is str:
        return value if value.isascii() else without_surrogates(value)
    if type(value) is int:
        return str(value)
    return "" if value is None else without_surrogates(text_of(value))


def _flatten(fields: dict[str, str], prefix: str, document: Mapping[str, Any], depth: int) -> None:
    """`http: {status: 500}` is `http.status=500`."""
    for name, value in document.items():
        path = without_surrogates(f"{prefix}{name}")
        if type(value) is dict and depth < _NESTED_MAX:
            _flatten(fields, f"{path}.", value, depth + 1)
        else:
            fields[path] = _text(value)
