"""`group.consumer.assignors`: a broker that cannot assign must not start."""

import pytest

from runnel.config.definition import ConfigError
from runnel.config.settings import load
from runnel.coordinator.groups.consumer_target import ASSIGNORS


def test_only_the_brokers_own_assignors_are_taken() -> None:
    settings, _ = load({"group.consumer.assignors": "range"}, {}, None)
    assert settings.groups.group_consumer_assignors == ("range",)
    with pytest.raises(ConfigError, match="best is not among uniform, range"):
        load({"group.consumer.assignors": "range,best"}, {}, None)


def test_every_assignor_that_may_be_named_is_there() -> None:
    settings, _ = load({}, {}, None)
    assert set(settings.groups.group_consumer_assignors) == set(ASSIGNORS)
