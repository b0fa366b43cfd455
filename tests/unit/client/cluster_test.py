"""Addresses as users write them, and what the cluster's refusals say."""

import pytest

from runnel.client.cluster import RefusedError, addresses_of
from runnel.errors import ErrorCode


def test_addresses() -> None:
    assert addresses_of("a:1") == [("a", 1)]
    assert addresses_of("a:1, [::1]:9092") == [("a", 1), ("::1", 9092)]


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:b", "a:0", "a:65536", "a:1,", "a:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        addresses_of(text)


def test_a_refusal_names_its_subject_once() -> None:
    code = ErrorCode.TOPIC_ALREADY_EXISTS
    assert str(RefusedError(code, "Topic 'a' already exists.", "topic a")).startswith("Topic 'a'")
    assert str(RefusedError(code, "it exists", "topic zz")) == "topic zz: it exists"
    assert str(RefusedError(code, None, "topic zz")) == "topic zz: TOPIC_ALREADY_EXISTS"


def test_an_error_code_of_a_newer_broker() -> None:
    assert RefusedError(9999, "new").code == ErrorCode.UNKNOWN_SERVER_ERROR
