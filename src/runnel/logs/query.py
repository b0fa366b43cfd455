"""What somebody looks for: words, phrases, what must not be there, regular expressions.

    payment failed         both words, in any order
    "payment failed"       one after the other
    pay*                   words that begin so
    user=7                 a field, or anything else of several words: one after the other
    -retry  -"timed out"   not this
    /ca(rd|sh) \\d+/        RE2, on the text as it stands; -/.../ must not match

A word is a run of letters and digits, whatever its case; all else in ASCII parts words. That is
also what the index knows, so the index and a reader of plain lines find the same: see `matches`.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from re import Pattern

QUERY_CHARS_MAX: Final = 4096
TERMS_MAX: Final = 64
_TOKEN: Final = re.compile(r"[0-9a-z\x80-\U0010ffff]+")
_TERM: Final = re.compile(
    r"""(?P<not>-?)(?:"(?P<phrase>[^"]*)"(?P<star>\*?)|/(?P<regex>(?:\\.|[^/\\])+)/(?=\s|$)|(?P<word>\S+))"""
)


class QueryError(Exception):
    """The message says what is wrong with the query, and how to write it."""


class Term(NamedTuple):
    """Tokens that stand one after the other; the last may be the beginning of a longer one."""

    tokens: tuple[str, ...]
    is_prefix: bool = False
    is_not: bool = False


class Expression(NamedTuple):
    pattern: "Pattern[str]"
    is_not: bool = False


class Query(NamedTuple):
    terms: tuple[Term, ...] = ()
    expressions: tuple[Expression, ...] = ()

    def matches(self, text: str) -> bool:
        """The definition of what is found; the index only spares looking at the other lines."""
        for expression in self.expressions:
            if (expression.pattern.search(text) is None) is not expression.is_not:
                return False
        if not self.terms:
            return True
        tokens = tokens_of(text)
        return all(_occurs(term, tokens) is not term.is_not for term in self.terms)


def parse(text: str) -> Query:
    """Raises QueryError."""
    if len(text) > QUERY_CHARS_MAX:
        raise QueryError(f"the query has {len(text)} characters; {QUERY_CHARS_MAX} are the most")
    terms: list[Term] = []
    expressions: list[Expression] = []
    for found in _TERM.finditer(text):
        is_not = bool(found["not"])
        if found["regex"] is not None:
            expressions.append(Expression(_compiled(found["regex"]), is_not))
            continue
        written = found["word"] if found["phrase"] is None else found["phrase"]
        if found["word"] is not None and '"' in written:
            raise QueryError(f'{written}: a phrase begins and ends with ", with spaces around it')
        tokens = tuple(tokens_of(written))
        if tokens:
            is_prefix = bool(found["star"]) or (found["word"] is not None and written[-1] == "*")
            terms.append(Term(tokens, is_prefix, is_not))
        elif found["word"] is not None:
            raise QueryError(
                f"{written!r} has no letter or digit: write a regular expression, /{written}/"
            )
    if len(terms) + len(expressions) > TERMS_MAX:
        raise QueryError(f"the query has more than {TERMS_MAX} words")
    return Query(tuple(terms), tuple(expressions))


def folded(text: str) -> str:
    """In lower case. No letter beyond ASCII becomes one of ASCII: those are looked for in bytes."""
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "\ufffd").replace("\u212a", "\ufffd").lower()


def tokens_of(text: str) -> list[str]:
    return _TOKEN.findall(folded(text))


def _occurs(term: Term, tokens: Sequence[str]) -> bool:
    *whole, last = term.tokens
    count = len(whole)
    for at in range(count, len(tokens)):
        found = tokens[at]
        if (found.startswith(last) if term.is_prefix else found == last) and (
            not count or list(tokens[at - count : at]) == whole
        ):
            return True
    return False


def _compiled(written: str) -> "Pattern[str]":
    """RE2 takes time in proportion to the text, whatever is written."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern[str] = re2.compile(written.replace("\\/", "/"), options)
    except re2.error as error:
        why = error.args[0]
        told = why.decode() if isinstance(why, bytes) else why
        raise QueryError(f"/{written}/ is no regular expression of RE2: {told}") from None
    return pattern
