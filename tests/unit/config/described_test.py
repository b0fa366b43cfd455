"""Goal: a description shows what counts, under every name that Kafka has for it."""

import pytest

from runnel.config.described import describe_broker, describe_topic
from runnel.config.dynamic import Layers


@pytest.mark.parametrize("given", ["node.id", "broker.id"])
def test_the_number_of_a_broker_has_two_names(given: str) -> None:
    described = {row.name: row.value for row in describe_broker(Layers({}, {}, {given: "7"}))}
    assert (described["node.id"], described["broker.id"]) == ("7", "7")


def test_what_a_newer_version_stored_is_told_without_its_value() -> None:
    """As of a broker: nobody knows whether it is a secret. Who sees the name can take it away."""
    (row,) = [
        row for row in describe_topic({"newer.name": "x"}, Layers({}, {}, {})) if row.is_sensitive
    ]
    assert (row.name, row.value, row.synonyms[0].value) == ("newer.name", None, None)
