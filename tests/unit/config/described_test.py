"""Goal: a description shows what counts, under every name that Kafka has for it."""

import pytest

from runnel.config.described import describe_broker
from runnel.config.dynamic import Layers


@pytest.mark.parametrize("given", ["node.id", "broker.id"])
def test_the_number_of_a_broker_has_two_names(given: str) -> None:
    described = {row.name: row.value for row in describe_broker(Layers({}, {}, {given: "7"}))}
    assert (described["node.id"], described["broker.id"]) == ("7", "7")
