"""Reading a mapping of the document field by field; what was asked for is what it may hold.

Whoever reads goes on after a mistake, so that all of them are reported at once.
"""

from collections.abc import Iterator, Mapping, Sequence

from runnel.config.registry import suggestion
from runnel.pipelines.document import Document, Fault, Mark, Node
from runnel.pipelines.options import Option, Options, Value, defaults


class Section:
    """The document itself, or what stands below one of its names."""

    def __init__(
        self, document: Document, node: Node, path: str, marks: dict[str, Mark] | None = None
    ) -> None:
        self._document = document
        self._node = node
        self.path = path
        self.marks = {} if marks is None else marks
        self._asked: set[str] = set()
        if node.entries is None and not (node.text is None and node.items is None):
            self.fault(node.mark, f"{path or 'the file'} is {node.what}, not a mapping of names")

    def __contains__(self, name: str) -> bool:
        self._asked.add(name)
        return self._node.entries is not None and name in self._node.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.entries or {})

    def fault(self, mark: Mark, message: str) -> None:
        self._document.faults.append(Fault(mark, message))

    def complain(self, name: str, message: str) -> None:
        """At the name's place, or at this section's where it is not given."""
        self.fault(self.marks.get(self._full(name), self._node.mark), message)

    def node(self, name: str) -> Node | None:
        self._asked.add(name)
        entry = (self._node.entries or {}).get(name)
        if entry is None:
            return None
        self.marks[self._full(name)] = entry.node.mark
        return entry.node

    def section(self, name: str) -> "Section":
        """Empty where it is not given."""
        node = self.node(name)
        if node is None:
            node = Node(self._node.mark)
        return Section(self._document, node, self._full(name), self.marks)

    def text(self, name: str, default: str = "") -> str:
        node = self.node(name)
        if node is None:
            return default
        if node.text is None:
            self.fault(node.mark, f"{self._full(name)} is {node.what}; a word or text is needed")
            return default
        return node.text.strip()

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        found = self.text(name, default)
        if found not in choices and name in self:
            hint = suggestion(found, choices)
            self.complain(
                name, f"{self._full(name)}: {found!r} is not one of {', '.join(choices)}{hint}"
            )
            return default
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """A list, or one text with commas between names."""
        node = self.node(name)
        return () if node is None else self._texts(name, node)

    def mapping(self, name: str) -> dict[str, str]:
        """Names that are not known here, such as options of Spark, with their values as text."""
        inner = self.section(name)
        found: dict[str, str] = {}
        for key in inner:
            node = inner.node(key)
            if node is not None and node.text is not None:
                flag = {"True": "true", "False": "false"}.get(node.text, node.text)
                found[key] = flag
            elif node is not None:
                self.fault(node.mark, f"{inner.path}.{key} is {node.what}; a value is needed")
        return found

    def value(self, option: Option) -> Value:
        """Of a declared option; its default where it is not given or does not fit."""
        node = self.node(option.name)
        path = self._full(option.name)
        if node is None:
            if option.required:
                self.fault(self._node.mark, f"{path} is missing: {option.help}")
            return defaults((option,))[option.name]
        if option.type == "group":
            return self.section(option.name).options(option.inside).values
        if option.type == "texts":
            return self._texts(option.name, node)
        if node.text is None:
            self.fault(node.mark, f"{path} is {node.what}; {option.help}")
            return option.default
        try:
            return option.read(node.text.strip())
        except ValueError as error:
            self.fault(node.mark, f"{path}: {error}")
            return option.default

    def options(self, declared: tuple[Option, ...]) -> Options:
        values: Mapping[str, Value] = {option.name: self.value(option) for option in declared}
        found = Options(values, frozenset(self))
        self.finish()
        return found

    def finish(self) -> None:
        """Every name that was not asked for is a mistake."""
        for name, entry in (self._node.entries or {}).items():
            if name not in self._asked:
                hint = suggestion(name, sorted(self._asked))
                known = ", ".join(sorted(self._asked))
                hint = hint or (f"; there are {known}" if known else "; it takes no options")
                where = f" below {self.path}" if self.path else ""
                self.fault(entry.key_mark, f"unknown name {name}{where}{hint}")

    def _texts(self, name: str, node: Node) -> tuple[str, ...]:
        if node.text is not None:
            return tuple(part.strip() for part in node.text.split(",") if part.strip())
        found = [item.text for item in node.items or () if item.text]
        if node.items is None or len(found) != len(node.items):
            self.fault(node.mark, f"{self._full(name)} is {node.what}; a list of names is needed")
        return tuple(found)

    def _full(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name
