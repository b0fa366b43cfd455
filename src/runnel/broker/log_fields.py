"""Context that lines of the log carry beside their text, for `extra=`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.types import TopicPartition

Fields = dict[str, object]


def about(partition: "TopicPartition") -> Fields:
    return {"topic": partition.topic, "partition": partition.index}
