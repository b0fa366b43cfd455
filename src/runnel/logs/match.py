"""What the index is asked for: filters as an expression of SQLite's FTS5.

Its answers may be too many, never too few: each is looked at again by `Filters.matches`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from runnel.logs.filters import OWN_FIELDS, Filters
from runnel.logs.lines import LEVELS, Line
from runnel.logs.query import Term, folded, tokens_of

ORIGIN: Final = ("service", "logger", "host")  # what the column `origin` holds


def origin_of(line: Line) -> str:
    """The column `origin` of a line."""
    return folded(f"service={line.service}\nlogger={line.logger}\nhost={line.host}")


def expression_of(filters: Filters) -> str | None:
    """None where the index cannot narrow it down: then all lines have to be looked at."""
    wanted = list(_wanted(filters))
    if not wanted:
        return None
    unwanted = [_term(term) for term in filters.query.terms if term.is_not]
    found = " AND ".join(wanted)
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def _wanted(filters: Filters) -> Iterator[str]:
    for term in filters.query.terms:
        if not term.is_not:
            yield _term(term)
    if filters.level is not None:
        yield _any(f"level : {_phrase([name])}" for name in LEVELS[LEVELS.index(filters.level) :])
    if filters.services:
        yield _any(_field("origin", "service", name) for name in filters.services)
    for name, text in filters.fields.items():
        if name in ORIGIN:
            yield _any([_field("origin", name, text), _field("text", name, text)])
        elif name not in OWN_FIELDS and tokens_of(f"{name}={text}"):
            yield _field("text", name, text)


def _term(term: Term) -> str:
    return f"text : {_phrase(term.tokens)}{' *' if term.is_prefix else ''}"


def _field(column: str, name: str, text: str) -> str:
    return f"{column} : {_phrase(tokens_of(f'{name}={text}'))}"


def _phrase(tokens: Iterable[str]) -> str:
    return '"' + " ".join(tokens) + '"'


def _any(parts: Iterable[str]) -> str:
    return "(" + " OR ".join(parts) + ")"
