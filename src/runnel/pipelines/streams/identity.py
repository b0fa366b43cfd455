"""What a record is told by: `by: key`, `value`, `json:FIELD`, `header:NAME` or `sql:EXPRESSION`."""

import re
from typing import Final, NamedTuple

WAYS: Final = "key, value, json:FIELD, header:NAME or sql:EXPRESSION"
_FIELD: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_HEADER: Final = re.compile(r"[^'\\\s]{1,200}")


class By(NamedTuple):
    source: str
    name: str = ""

    @property
    def needs_headers(self) -> bool:
        return self.source == "header"

    @property
    def needs_bytes(self) -> bool:
        """Whether it looks into values as they are in the topic, not decoded."""
        return self.source in ("value", "json")

    def sql(self) -> str:
        """An expression over the columns of a topic; null where a record has no such thing."""
        match self.source:
            case "json":
                return f"get_json_object(cast(value as string), '$.{self.name}')"
            case "header":
                return f"element_at(filter(headers, h -> h.key = '{self.name}'), -1).value"
            case "sql":
                return f"({self.name})"
        return self.source

    def text_sql(self) -> str:
        """The same as text for people: bytes that are none are replaced."""
        return f"make_valid_utf8(cast({self.sql()} as string))"


def parse_by(text: str) -> By:
    """Raises ValueError."""
    source, colon, name = text.partition(":")
    if not colon and source in ("key", "value"):
        return By(source)
    is_known = {
        "json": _FIELD.fullmatch(name) is not None,
        "header": _HEADER.fullmatch(name) is not None,
        "sql": bool(name.strip()),
    }
    if not (colon and is_known.get(source)):
        raise ValueError(f"{text!r} is not {WAYS}")
    return By(source, name)
