"""Goal: addresses that clients cannot follow are told of, with the remedy; good ones are not."""

import pytest

from runnel.broker.reachable import doubts, resolves
from runnel.config.listeners import Listener


def at(host: str, name: str = "PLAINTEXT", port: int = 9092) -> Listener:
    return Listener(name, "PLAINTEXT", host, port)


def knows(host: str) -> bool:
    return host == "known.example"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_a_loopback_address_told_to_other_machines(host: str) -> None:
    (doubt,) = doubts([at("0.0.0.0")], [at(host)], knows)
    assert f"{host}:9092" in doubt and "--advertised-host NAME" in doubt
    assert not doubts([at("127.0.0.1")], [at(host)], knows), "it listens for this machine only"


def test_of_two_doors_one_may_be_for_this_machine() -> None:
    bound = [at("0.0.0.0", "EXTERNAL"), at("0.0.0.0", "INTERNAL", 19092)]
    told = [at("localhost", "EXTERNAL"), at("known.example", "INTERNAL", 19092)]
    assert not doubts(bound, told, knows)


def test_a_name_that_does_not_resolve() -> None:
    (doubt,) = doubts([at("0.0.0.0")], [at("misspelt.example")], knows)
    assert "cannot resolve misspelt.example" in doubt and "advertised.listeners" in doubt


@pytest.mark.parametrize("host", ["known.example", "10.0.0.7", "2001:db8::7"])
def test_good_ones_are_not_doubted(host: str) -> None:
    assert not doubts([at("0.0.0.0")], [at(host)], knows)


def test_names_are_asked_of_the_system() -> None:
    assert resolves("localhost") and not resolves("no-such-host.invalid")
