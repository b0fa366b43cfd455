"""What is known of one configuration name, and how the text of a value becomes a typed one.

Values are text until `parse`, as in Kafka: files, flags, the environment and AlterConfigs all give
text, and DescribeConfigs gives it back. `parse` accepts exactly what Kafka's ConfigDef accepts.
"""

import math
import re
from typing import Literal, NamedTuple

Scope = Literal["topic", "group", "broker"]
Type = Literal["boolean", "class", "double", "int", "list", "long", "password", "short", "string"]
Status = Literal["honoured", "ignored", "refused"]
# Kafka's update modes: fixed at start; each broker its own; one value with exceptions per broker.
Update = Literal["read-only", "per-broker", "cluster-wide"]
Value = bool | int | float | str | tuple[str, ...] | None

MAX_VALUE_LENGTH = 32_767  # what a Kafka string of the classic protocol can hold

# Kafka's ConfigType codes, as DescribeConfigs gives them.
_TYPE_CODES: dict[Type, int] = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}
# Java's Duration, which knows no months and, here, no negative numbers.
_BY_DURATION = re.compile(
    r"by_duration:P(?=.)(\d{1,9}D)?(T(?=.)(\d{1,12}H)?(\d{1,12}M)?(\d{1,15}([.,]\d{0,9})?S)?)?",
    re.IGNORECASE,
)
_BITS = {"short": 16, "int": 32, "long": 64}


class ConfigError(Exception):
    """A name nobody knows or a value that is not allowed; the message names both."""


class Definition(NamedTuple):
    scope: Scope
    name: str
    type: Type
    default: str | None
    minimum: int | float | None = None
    maximum: int | float | None = None
    besides: int | None = None  # one value allowed outside the bounds
    choices: tuple[str, ...] = ()
    by_duration: bool = False  # besides the choices, `by_duration:` and an ISO 8601 duration
    any_case: bool = False
    not_empty: bool = False
    update: Update = "read-only"  # "cluster-wide" for what is dynamic and belongs to no broker
    status: Status = "ignored"

    @property
    def is_dynamic(self) -> bool:
        return self.update != "read-only"

    @property
    def is_sensitive(self) -> bool:
        """Never shown, nor logged: DescribeConfigs answers with null."""
        return self.type == "password"

    @property
    def type_code(self) -> int:
        return _TYPE_CODES[self.type]

    def parse(self, text: str) -> Value:
        """Raises ConfigError with Kafka's wording."""
        if len(text) > MAX_VALUE_LENGTH:
            raise ConfigError(f"{self.name} has a value of {len(text)} characters")
        value = self._typed(text)
        self._check(value)
        return value

    def parse_default(self) -> Value:
        return None if self.default is None else self.parse(self.default)

    def _typed(self, text: str) -> Value:
        stripped = text.strip()
        match self.type:
            case "boolean":
                if stripped.lower() not in ("true", "false"):
                    raise self._wrong(text, "Expected value to be either true or false")
                return stripped.lower() == "true"
            case "short" | "int" | "long":
                return self._integer(text, stripped)
            case "double":
                return self._double(text, stripped)
            case "list":
                # A value given twice counts once, as in Kafka.
                parts = [part.strip() for part in stripped.split(",")] if stripped else []
                return tuple(dict.fromkeys(parts))
            case "string" | "class" | "password":
                return stripped

    def _integer(self, given: str, text: str) -> int:
        digits = text[1:] if text[:1] in ("+", "-") else text
        # Bounded before `int`, whose time grows with the square of the length.
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 40):
            raise self._wrong(given, f"Not a number of type {self.type.upper()}")
        value = int(text)
        limit = 1 << (_BITS[self.type] - 1)
        if not -limit <= value < limit:
            raise self._wrong(given, f"Not a number of type {self.type.upper()}")
        return value

    def _double(self, given: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if "_" in text or not math.isfinite(value):
            raise self._wrong(given, "Not a number of type DOUBLE")
        return value

    def _check(self, value: Value) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_bounds(value)
        elif isinstance(value, tuple):
            self._check_list(value)
        elif isinstance(value, str) and self.by_duration:
            if value not in self.choices and not _BY_DURATION.fullmatch(value):
                raise self._wrong(
                    value, f"it must be {', '.join(self.choices)} or by_duration:PnDTnHnMn.nS"
                )
        elif isinstance(value, str) and self.choices:
            allowed = [c.lower() for c in self.choices] if self.any_case else self.choices
            if (value.lower() if self.any_case else value) not in allowed:
                raise self._wrong(value, f"String must be one of: {', '.join(self.choices)}")
        elif self.not_empty and not value:
            raise self._wrong(value, "String must be non-empty")

    def _check_bounds(self, value: int | float) -> None:
        low, high = self.minimum, self.maximum
        if self.besides is not None and low is not None and high is not None:
            if value != self.besides and not low <= value <= high:
                why = f"Value must be between {low} and {high} or equal to {self.besides}"
                raise self._wrong(value, why)
            return
        if self.minimum is not None and not value >= self.minimum:
            raise self._wrong(value, f"Value must be at least {self.minimum}")
        if self.maximum is not None and not value <= self.maximum:
            raise self._wrong(value, f"Value must be no more than {self.maximum}")

    def _check_list(self, value: tuple[str, ...]) -> None:
        if self.not_empty and not value:
            raise ConfigError(f"Configuration '{self.name}' must not be empty.")
        if "" in value and self.choices:
            raise ConfigError(f"Configuration '{self.name}' values must not be empty.")
        for item in value:
            if self.choices and item not in self.choices:
                raise self._wrong(item, f"String must be one of: {', '.join(self.choices)}")

    def _wrong(self, value: object, why: str) -> ConfigError:
        shown = "[hidden]" if self.is_sensitive else value
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {why}")
