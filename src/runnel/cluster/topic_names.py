"""Which topic names are legal, by Kafka's rules."""

import re
from collections.abc import Iterable

from runnel.errors import ErrorCode, RunnelError

MAX_TOPIC_NAME_LENGTH = 249

_INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def ensure_legal(name: str) -> None:
    """Raises RunnelError(INVALID_TOPIC_EXCEPTION) with Kafka's wording."""
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > MAX_TOPIC_NAME_LENGTH:
        why = (
            f"the length of '{name[:MAX_TOPIC_NAME_LENGTH]}' is longer than the max allowed "
            f"length {MAX_TOPIC_NAME_LENGTH}"
        )
    elif not _LEGAL.fullmatch(name):
        why = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return
    raise RunnelError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def ensure_no_collision(name: str, existing: Iterable[str]) -> None:
    """Kafka's metrics turn '.' into '_', so two names may not differ in that alone."""
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    for other in existing:
        if other != name and len(other) == len(name) and other.replace(".", "_") == folded:
            raise RunnelError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )


def is_internal(name: str) -> bool:
    """The coordinators' own topics; any other name may begin with two underscores too."""
    return name in _INTERNAL
