"""No secret reaches a log: values known to be secret, and text that looks like one.

Known are the values of settings of type password, however they are quoted; they are hidden wherever
they turn up, also where a client sends them back. The patterns catch what nobody declared: a
password in a client id, a token in an address, a private key in an exception. They look at a
bounded text and none of them backtracks over it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from runnel.config.registry import is_sensitive

HIDDEN: Final = "[hidden]"
KNOWN_CHARACTERS_MIN: Final = 4  # a shorter one would make holes in every second line
KNOWN_MAX: Final = 1000

_VALUE = r"""(?:"[^"]{0,2000}"?|'[^']{0,2000}'?|[^\s,;&)}\]"']{1,2000})"""
_PATTERNS: Final = (
    (re.compile(r"(jaas\.config[\"']?\s{0,3}[=:]\s{0,3})[^;]{1,4000};?", re.IGNORECASE), r"\1"),
    (re.compile(r"-----BEGIN [A-Z ]{0,40}KEY-----.{0,8000}", re.DOTALL), ""),
    (re.compile(r"(authorization[\"']?\s{0,3}[=:]\s{0,3})[^\r\n]{1,2000}", re.IGNORECASE), r"\1"),
    (re.compile(r"(\bbearer\s{1,3})[\w.~+/=-]{8,2000}", re.IGNORECASE), r"\1"),
    (re.compile(r"\beyJ[\w-]{8,2000}\.[\w-]{4,4000}(?:\.[\w-]{0,2000})?"), ""),  # a JSON Web Token
    (
        re.compile(
            r"((?:password|passwd|passphrase|pwd|secret|token|credentials?|api[_.-]?key"
            r"|private[_.-]?key|keystore[_.-]key)[\w.-]{0,40}[\"']?\s{0,3}[=:]\s{0,3})" + _VALUE,
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (re.compile(r"(://[^\s/:@]{0,200}:)[^\s/@]{1,200}(?=@)"), r"\1"),
)


class Secrets:
    """What must not be seen. Made once, when the settings are known."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Of everything that was set, by its name in the registry or of one listener."""
        self._known = _longest_first(text for name, text in given.items() if is_sensitive(name))

    def hide(self, text: str) -> str:
        for known in self._known:
            if known in text:
                text = text.replace(known, HIDDEN)
        for pattern, kept in _PATTERNS:
            text = pattern.sub(kept + HIDDEN, text)
        return text


def _longest_first(texts: Iterable[str]) -> list[str]:
    """Each as it is, and as `repr` shows it. One secret may be a part of another."""
    found: set[str] = set()
    for text in texts:
        stripped = text.strip()
        found |= {text, stripped, repr(stripped)[1:-1]}
    long_enough = [text for text in found if len(text) >= KNOWN_CHARACTERS_MIN]
    return sorted(long_enough, key=lambda text: (-len(text), text))[:KNOWN_MAX]
