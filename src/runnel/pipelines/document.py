"""YAML as nodes that know their line and column, so that a mistake can be shown where it stands.

Values stay text until somebody asks for a number: `topic: 007` is a topic's name. `${NAME}` and
`${NAME:-default}` are replaced by variables of the environment; `$${` is a plain `${`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml

FILE_BYTES_MAX: Final = 1 << 20
NODES_MAX: Final = 10_000  # after aliases are followed: a small file can unfold into a huge one
_VARIABLE: Final = re.compile(r"\$(\$)?\{([^}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, order=True)
class Mark:
    line: int  # from 1
    column: int


@dataclass(frozen=True)
class Fault:
    """A mistake at its place in the file."""

    mark: Mark
    message: str


@dataclass(frozen=True)
class Node:
    """One of the three: a mapping, a list, or text (None where nothing stands)."""

    mark: Mark
    text: str | None = None
    items: "tuple[Node, ...] | None" = None
    entries: "Mapping[str, Entry] | None" = None

    @property
    def what(self) -> str:
        """For errors."""
        if self.entries is not None:
            return "a mapping"
        if self.items is not None:
            return "a list"
        return "nothing" if self.text is None else repr(self.text[:60])


@dataclass(frozen=True)
class Entry:
    key_mark: Mark
    node: Node


@dataclass
class Document:
    root: Node
    faults: list[Fault] = field(default_factory=list)
    is_broken: bool = False  # no YAML at all: the root says nothing
    from_environment: dict[str, str] = field(default_factory=dict)  # what `${NAME}` stood for


def parse(text: str, environ: Mapping[str, str] | None = None) -> Document:
    """What can be read of it; the document's faults say what cannot."""
    document = Document(Node(Mark(1, 1)))
    if len(text.encode()) > FILE_BYTES_MAX:
        return _broken(Fault(Mark(1, 1), "the file is larger than 1 MiB"))
    try:
        composed = yaml.compose(text, Loader=yaml.SafeLoader)
        if composed is not None:
            reader = _Reader(document, os.environ if environ is None else environ)
            document.root = reader.node(composed)
    except RecursionError:  # or an alias stands for what it is in
        return _broken(Fault(Mark(1, 1), "it is nested too deep"))
    except yaml.MarkedYAMLError as error:
        return _broken(_syntax(error))
    except yaml.YAMLError as error:  # characters that no YAML may have
        return _broken(Fault(Mark(1, 1), f"not YAML: {str(error).partition(chr(10))[0]}"))
    return document


def _broken(fault: Fault) -> Document:
    return Document(Node(fault.mark), [fault], is_broken=True)


def _syntax(error: yaml.MarkedYAMLError) -> Fault:
    at = error.problem_mark or error.context_mark
    mark = Mark(at.line + 1, at.column + 1) if at else Mark(1, 1)
    problem = error.problem or "not YAML"
    if "'\\t'" in problem:
        problem = "a tab: YAML is indented with spaces"
    elif "mapping values are not allowed" in problem:
        problem += "; a value with ': ' in it stands in quotes"
    return Fault(mark, f"not YAML: {problem}")


class _Reader:
    def __init__(self, document: Document, environ: Mapping[str, str]) -> None:
        self._document = document
        self._environ = environ
        self._left = NODES_MAX

    def node(self, raw: yaml.Node) -> Node:
        mark = _mark(raw)
        self._left -= 1
        if self._left < 0:
            if self._left == -1:
                self._document.faults.append(Fault(mark, f"more than {NODES_MAX} values"))
            return Node(mark)
        if isinstance(raw, yaml.MappingNode):
            return Node(mark, entries=self._entries(raw))
        if isinstance(raw, yaml.SequenceNode):
            return Node(mark, items=tuple(self.node(item) for item in raw.value))
        is_empty = raw.tag == "tag:yaml.org,2002:null"
        return Node(mark, text=None if is_empty else self._replaced(str(raw.value), mark))

    def _entries(self, raw: yaml.MappingNode) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for key, value in raw.value:
            mark = _mark(key)
            if not isinstance(key, yaml.ScalarNode):
                self._document.faults.append(Fault(mark, "a name is needed before the colon"))
                continue
            name = str(key.value)
            if name in found:
                first = found[name].key_mark.line
                self._document.faults.append(
                    Fault(mark, f"{name} stands here twice; first in line {first}")
                )
                continue
            found[name] = Entry(mark, self.node(value))
        return found

    def _replaced(self, text: str, mark: Mark) -> str:
        def replacement(found: re.Match[str]) -> str:
            if found[1]:
                return found[0][1:]
            name, has_default, default = found[2].partition(":-")
            if not _NAME.fullmatch(name):
                self._fault(mark, f"{found[0]} is no variable: write ${{NAME}} or ${{NAME:-text}}")
                return ""
            value = self._environ.get(name, "")
            if value:
                self._document.from_environment[name] = value
                return value
            if not has_default:
                self._fault(
                    mark,
                    f"the environment has no {name}: set it, or write ${{{name}:-default}}",
                )
            return default

        return _VARIABLE.sub(replacement, text)

    def _fault(self, mark: Mark, message: str) -> None:
        self._document.faults.append(Fault(mark, message))


def _mark(raw: yaml.Node) -> Mark:
    return Mark(raw.start_mark.line + 1, raw.start_mark.column + 1)
