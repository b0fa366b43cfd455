"""What a test sets of its broker, over what it has anyway, by whatever names.

A broker refuses two names for one setting in one place, rightly; a default of ours is no second.
Names are looked up only where some are given: knowing them all takes 20 ms.
"""

from collections.abc import Mapping
from typing import TypeVar

from runnel.testing.failure import BrokerError

T = TypeVar("T")


def laid_over(defaults: Mapping[str, T], given: Mapping[str, T]) -> dict[str, T]:
    """Both, but for the defaults of settings that are given, by that name or by another."""
    meant = {_meaning(name) for name in given}
    kept = [name for name in defaults if not meant or _meaning(name) not in meant]
    return {**{name: defaults[name] for name in kept}, **given}


def ensure_not_ours(names: Mapping[str, str]) -> None:
    """Raises BrokerError for a setting that is an argument of its own."""
    if not names:
        return
    from runnel.config.spellings import ADDRESS, HOST, PORT

    arguments = dict.fromkeys(("listeners", HOST, PORT, ADDRESS), "port")
    arguments |= dict.fromkeys(("log.dirs", "log.dir"), "data_dir")
    for name in names:
        argument = arguments.get(_meaning(name))
        if argument is not None:
            raise BrokerError(f"settings: {name!r} is not one of them; give {argument}= instead")


def _meaning(name: str) -> str:
    from runnel.config.spellings import meant_by

    meant = meant_by(name)
    return name if meant is None else meant.name
