"""Which topics a read is of: by name, by a pattern, or partition by partition."""

import re
from dataclasses import dataclass
from typing import Final

from runnel.arrow.errors import OptionError
from runnel.spark.reads.offsets import parse_partitions
from runnel.spark.reads.option_values import Values
from runnel.types import TopicPartition

STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True)
class Subscription:
    """Exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def option(self) -> str:
        if self.topics:
            return f"subscribe={','.join(self.topics)}"
        return f"subscribePattern={self.pattern}" if self.pattern else "assign"

    @property
    def names(self) -> tuple[str, ...] | None:
        """The topics, or None where all have to be looked at."""
        if self.pattern:
            return None
        return self.topics or tuple(sorted({at.topic for at in self.assigned}))

    def matches(self, topic: str) -> bool:
        """Found anywhere in the name: the pattern is not anchored."""
        return re.search(self.pattern, topic) is not None


def subscription(values: Values) -> Subscription:
    """Raises OptionError."""
    given = [name for name in STRATEGIES if name in values]
    if len(given) != 1:
        which = "Only one" if given else "One"
        verb = "can" if given else "must"
        raise OptionError(
            f"{which} of the following options {verb} be specified for Kafka source:"
            f' {", ".join(STRATEGIES)}. For example .option("subscribe", "orders")'
        )
    (name,) = given
    text = values.text(name)
    if name == "assign":
        return Subscription(assigned=parse_partitions(name, text))
    if name == "subscribe":
        topics = tuple(sorted({part.strip() for part in text.split(",")} - {""}))
        if not topics:
            raise OptionError(
                "No topics to subscribe to as specified value for option 'subscribe' is"
                f" '{values.text(name)}'; write for example orders,payments"
            )
        return Subscription(topics=topics)
    if not text:
        raise OptionError(
            "Pattern to subscribe is empty as specified value for option 'subscribePattern' is"
            f" '{text}'; write for example orders-.*"
        )
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(
            f"subscribePattern={text} is no regular expression of Python: {error}; write for"
            " example orders-.*"
        ) from None
    return Subscription(pattern=text)
