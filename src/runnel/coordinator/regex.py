"""Regular expressions from the network, over names: RE2, and never `re`.

RE2 takes time in proportion to the text, whatever the pattern. That still leaves the size of the
pattern to be limited: below these bounds the worst known one takes 20 ms for the longest name.
"""

from collections.abc import Callable
from typing import Final

from runnel.errors import ErrorCode, RunnelError

PATTERN_CHARACTERS_MAX: Final = 4_096
PROGRAM_SIZE_MAX: Final = 2_000  # instructions that a pattern is compiled to
MEMORY_MAX_BYTES: Final = 2 * 1024 * 1024  # of a pattern while it is in use

Matches = Callable[[str], bool]

# Kafka's library says the same in other words.
_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def compile_regex(pattern: str) -> Matches:
    """Tells whether a whole name matches. Raises INVALID_REGULAR_EXPRESSION."""
    import re2  # late: most brokers never see a pattern

    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise _invalid(pattern[:100], f"longer than {PATTERN_CHARACTERS_MAX} characters")
    options = re2.Options()
    options.max_mem = MEMORY_MAX_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise _invalid(pattern, _reason(error)) from None
    if compiled.programsize > PROGRAM_SIZE_MAX:
        raise _invalid(pattern, "expression too large")
    fullmatch: Callable[[str], object | None] = compiled.fullmatch
    return lambda name: fullmatch(name) is not None


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    kind = text.partition(": ")[0]
    return _WORDS.get(kind, kind)


def _invalid(pattern: str, why: str) -> RunnelError:
    return RunnelError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}.",
    )
