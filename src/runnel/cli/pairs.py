"""`name=value` as people write it after an option."""

from collections.abc import Iterable

from runnel.cli.output import CommandError


def assignments(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Raises CommandError for what is no assignment, and for a name that is given twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise CommandError(f"{option} wants NAME=VALUE, not {text!r}.")
        if name in found:
            raise CommandError(f"{option} {name} is given twice: leave one out.")
        found[name] = value
    return found
