"""What a pipeline's checkpoint was begun with, and whether the file still says the same.

A checkpoint belongs to its pipeline's file as it was. What has changed since is explained before
Spark starts: what Spark takes up from the next batch on, and what needs `reset`. A reset begins a
new generation: another checkpoint, another query id, and where it begins.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runnel.pipelines.home import Home
from runnel.pipelines.spec import Spec

VERSION: Final = 1


class OriginError(Exception):
    """The checkpoint cannot be gone on with; the message says why, and what to do."""


@dataclass(frozen=True)
class Origin:
    generation: int = 1
    start: str = ""  # of this generation, where a reset has set it: offsets as JSON, or a word
    spec: Mapping[str, Any] = field(default_factory=dict)  # what the file said

    def query_id(self, name: str) -> str:
        return name if self.generation == 1 else f"{name}.{self.generation}"


@dataclass(frozen=True)
class Change:
    what: str
    meaning: str
    needs_reset: bool = False


def read(home: Home) -> Origin:
    """Raises OriginError for what a newer Runnel has written."""
    try:
        document = json.loads(home.spec_file.read_text())
        if not isinstance(document, dict):
            raise ValueError("not a mapping")
    except FileNotFoundError:
        return Origin()
    except ValueError as error:
        raise OriginError(
            f"{home.spec_file} cannot be read: {error}; restore or delete it"
        ) from None
    version = document.get("version", 0)
    if version > VERSION:
        raise OriginError(
            f"{home.folder} was written by a newer Runnel (version {version}, this one knows"
            f" {VERSION}): run it with that one, or reset it"
        )
    try:
        return Origin(document["generation"], document["start"], document["spec"])
    except KeyError as error:
        raise OriginError(
            f"{home.spec_file} cannot be read: it has no {error}; restore or delete it"
        ) from None


def write(home: Home, origin: Origin) -> None:
    home.folder.mkdir(parents=True, exist_ok=True)
    document = {"version": VERSION, "generation": origin.generation, "start": origin.start}
    home.write(home.spec_file, {**document, "spec": dict(origin.spec)})


def told(spec: Spec) -> dict[str, Any]:
    """What matters of a file for its checkpoint; no secrets, since it is kept."""
    return {
        "kind": spec.kind,
        "topics": sorted(spec.source.topics),
        "pattern": spec.source.pattern,
        "from_table": spec.source.table,
        "decode": spec.hidden(repr(spec.decode)),
        "transform": spec.hidden(repr(spec.transform)) + _file_of_transform(spec),
        "to_table": spec.to.table,
        "to_topic": spec.to.topic,
        "partition_by": list(spec.to.partition_by),
        "mode": spec.to.mode,
        "options": spec.hidden(json.dumps(spec.options.values, default=str, sort_keys=True)),
    }


def changes(was: Mapping[str, Any], now: Mapping[str, Any], *, has_state: bool) -> list[Change]:
    """Since the checkpoint was begun, or since the last run."""
    found: list[Change] = []
    for name, old in was.items():
        new = now.get(name)
        if name in now and new != old:
            found.append(_change(name, old, new, has_state=has_state))
    return found


def _change(name: str, old: Any, new: Any, *, has_state: bool) -> Change:  # noqa: ANN401  # JSON
    later = "it applies to what is read from now on; what is written stays as it is"
    if name == "kind":
        return Change(f"kind was {old}, is {new}", "its checkpoint is another's", needs_reset=True)
    if name == "topics":
        gone, fresh = sorted({*old} - {*new}), sorted({*new} - {*old})
        if gone:
            return Change(
                f"from no longer names {', '.join(gone)}",
                "the checkpoint has their offsets",
                needs_reset=True,
            )
        return Change(f"from has {', '.join(fresh)} as well", "read from its beginning")
    if name in ("pattern", "from_table"):
        return Change(f"from.{name} was {old!r}, is {new!r}", "another source", needs_reset=True)
    if name in ("to_table", "to_topic"):
        what = name.removeprefix("to_")
        return Change(
            f"to.{what} was {old or 'nothing'}, is {new or 'nothing'}",
            "it gets what is read from now on; 'reset --to earliest' would fill it from the start",
        )
    if name == "partition_by":
        return Change(f"to.partition_by was {old}, is {new}", "a table keeps what it was made with")
    label = {"mode": "to.mode"}.get(name, name)
    if has_state and name in ("transform", "decode", "options", "mode"):
        return Change(
            f"{label} has changed",
            "the checkpoint holds state: Spark goes on if the columns of the state are the same,"
            " and refuses otherwise; then reset it",
        )
    return Change(f"{label} has changed", later)


def _file_of_transform(spec: Spec) -> str:
    """Its text counts: the function of the same name may do something else by now."""
    import hashlib

    name = spec.transform.python.partition(":")[0]
    if not name:
        return ""
    try:
        return " " + hashlib.sha256((spec.file.parent / name).read_bytes()).hexdigest()[:16]
    except OSError:
        return ""
