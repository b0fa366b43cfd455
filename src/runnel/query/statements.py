"""Statements as people type them: mended where a word of SQL is in the way; errors explained.

`offset` is a word of SQL and a column of every topic. Where the parser stumbles over it, it was
meant as the column and is put in quotes.
"""

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final
from unicodedata import category, east_asian_width

MENDED_MAX: Final = 32
OWN_SCHEMAS: Final = frozenset(
    {"raw", "main", "memory", "temp"}
)  # in which names are those of topics
_OFFSET: Final = re.compile(r"\boffset\b", re.IGNORECASE)
_LINE: Final = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_MISSING: Final = re.compile(r'Table with name "?(.+?)"? does not exist')
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CLAUSES: Final = frozenset({"select", "from", "where", "having", "limit", "by", "as", "and", "or"})
_COUNT: Final = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_NEAR: Final = re.compile(r'syntax error at or near "(.*?)"', re.DOTALL)
_NO_FILE: Final = re.compile(r'^IO Error: No files found that match the pattern "([\w.-]+)"$')
_NAME: Final = r'(?:"(?:[^"]|"")+"|\w+)'
_QUALIFIED: Final = re.compile(rf"{_NAME}(?:\s*\.\s*{_NAME})*")
_EXTENDING: Final = frozenset({"Mn", "Me", "Cf"})  # characters that take no column of their own,
_JOINER: Final = "\u200d"  # that which makes the next one take none,
_SKINS: Final = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"  # and colours of emoji


def mended(statement: str, complaint: str) -> str | None:
    """With the `offset` in quotes that the parser complains about; None if it is not that."""
    near = _NEAR.search(complaint)
    position = _position(statement, complaint)
    if near is None or position is None:
        return None
    hidden = [match.span() for match in _QUOTED.finditer(statement)]
    words = [
        match.span()
        for match in _OFFSET.finditer(statement)
        if not any(first <= match.start() < last for first, last in hidden)
    ]
    for first, last in words:
        is_it = first == position
        is_before = last <= position and not statement[last:position].strip()
        if is_it or is_before:
            return f'{statement[:first]}"{statement[first:last]}"{statement[last:]}'
    return None


def hint_of_words(statement: str, complaint: str, reserved: Container[str]) -> str:
    """What to add where a column may be meant that is a word of SQL, as `at` or `order`."""
    position = _position(statement, complaint)
    if position is None:
        return ""
    before = re.search(r"(\w+)\s*$", statement[:position])
    here = re.match(r"\w+", statement[position:])
    for found in (before, here):
        word = "" if found is None else found[0].strip().lower()
        if word in reserved and word not in _CLAUSES:
            return f'\n\nIf {word} is a column, write it in double quotes: "{word}"'
    return ""


def missing_table(statement: str, complaint: str) -> str | None:
    """The name of the relation that DuckDB does not find.

    Of `shop.orders` it names `orders` alone once there is a schema `shop`: the caret tells.
    """
    found = _MISSING.search(complaint)
    if found is None:
        return None
    name = found[1]
    position = _position(statement, complaint)
    written = None if position is None else _QUALIFIED.match(statement, position)
    if written is None:
        return name
    parts = [_bare(part) for part in re.findall(_NAME, written[0])]
    is_of_ours = parts[:-1] and parts[0].lower() in OWN_SCHEMAS
    return name if is_of_ours or parts[-1] != name else ".".join(parts)


def missing_file(complaint: str) -> str | None:
    """The name of a file that DuckDB does not find, if a topic can have it: `clicks.json`."""
    found = _NO_FILE.search(complaint.strip())
    return None if found is None else found[1]


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def unquoted_name(statement: str, names: Iterable[str]) -> str | None:
    """A topic whose name has to be in quotes, and is not."""
    bare = _QUOTED.sub(" ", statement)
    odd = [name for name in names if not re.fullmatch(r"\w+", name)]
    return next((name for name in sorted(odd, key=len, reverse=True) if name in bare), None)


def may_show(columns: Sequence[str], statement: str) -> bool:
    """Whether a statement may use any of these columns, or shows all that there are."""
    bare = _QUOTED.sub(" ", _COUNT.sub(" ", statement)).lower()
    words = set(re.findall(r"\w+", bare))
    return "select" not in words or "*" in bare or any(name.lower() in words for name in columns)


def _position(statement: str, complaint: str) -> int | None:
    """Where the caret points to, in characters from the beginning of the statement."""
    line = _LINE.search(complaint)
    if line is None:
        return None
    shown, _, caret = complaint[line.end() :].partition("\n")
    column = len(caret) - len(caret.lstrip(" ")) - (line.end() - line.start())
    lines = statement.split("\n")
    number = int(line[1]) - 1
    if not caret.strip() or number >= len(lines) or column < 0:
        return None
    start = 0
    if shown.startswith("..."):  # a long line is cut at its beginning
        start = lines[number].find(shown.strip("."))
        column -= 3
        if start < 0:
            return None
    before = sum(len(each) + 1 for each in lines[:number]) + start
    return before + _characters(lines[number][start:], column)


def _characters(text: str, columns: int) -> int:
    """How many characters of a text are shown in so many columns of a terminal."""
    shown, is_joined = 0, False
    for count, char in enumerate(text):
        extends = is_joined or category(char) in _EXTENDING or char in _SKINS
        if not extends:
            if shown >= columns:
                return count
            shown += 2 if east_asian_width(char) in "WF" else 1
        is_joined = char == _JOINER
    return len(text) + columns - shown
