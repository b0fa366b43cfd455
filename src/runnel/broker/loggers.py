"""The levels of the broker's own loggers, as BROKER_LOGGER resources know them (KIP-412).

They last as long as the process. Names are Python's; the level names are log4j's, which Kafka's
tools expect.
"""

import logging
from collections.abc import Sequence
from typing import Final

from runnel.config.alterations import Change, Operation
from runnel.errors import ErrorCode, RunnelError

ROOT: Final = "root"
_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def levels() -> dict[str, str]:
    """Every logger with the level that counts for it, its own or an ancestor's."""
    known = logging.getLogger().manager.loggerDict
    names = [name for name in list(known) if isinstance(known[name], logging.Logger)]
    found = {name: _name(logging.getLogger(name).getEffectiveLevel()) for name in sorted(names)}
    return {ROOT: _name(logging.getLogger().level), **found}


def alter_levels(changes: Sequence[Change], *, validate_only: bool) -> None:
    """All or none. Raises RunnelError."""
    known = levels()
    for change in changes:
        _ensure_valid(change, known)
    if validate_only:
        return
    for name, _, text in changes:
        level = logging.NOTSET if text is None else _LEVELS[text.upper()]
        logging.getLogger(None if name == ROOT else name).setLevel(level)


def _ensure_valid(change: Change, known: dict[str, str]) -> None:
    name, operation, text = change
    if operation not in (Operation.SET, Operation.DELETE):
        raise RunnelError(
            ErrorCode.INVALID_REQUEST,
            f"{operation.name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if operation == Operation.DELETE and name == ROOT:
        raise RunnelError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
    if name not in known:
        raise RunnelError(ErrorCode.INVALID_CONFIG, f"Logger {name[:250]} does not exist!")
    if operation == Operation.SET and (text or "").upper() not in _LEVELS:
        raise RunnelError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {(text or '')[:250]} as it is not a supported "
            f"log level. Valid log levels are {', '.join(sorted(_LEVELS))}",
        )


def _name(level: int) -> str:
    """The log4j name at or below a level that may be any number."""
    return next((name for name, number in reversed(_LEVELS.items()) if level >= number), "TRACE")
